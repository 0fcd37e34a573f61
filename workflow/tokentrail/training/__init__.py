"""Training the small reference models: generated text, a vocabulary, a loop over the hand-written pass, checkpoints."""
