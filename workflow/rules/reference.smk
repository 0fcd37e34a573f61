# The small reference models, trained again from their seeds: `snakemake --cores 2 train_reference`. No part of a run.
# What is made lies in results/reference; the models that a run uses are a copy of it in resources/reference, which no
# rule writes to, so that a run never waits for a training.


rule train_reference:
    input:
        cards=[f"{TRAINED}/{model}/README.md" for model in REFERENCE.models],
        passage=f"{TRAINED}/held_out_stories.txt",


rule reference_training:
    input:
        text=REFERENCE_TEXT,
    output:
        f"{TRAINED}/{{reference}}/training.parquet",
        f"{TRAINED}/{{reference}}/config.json",
        f"{TRAINED}/{{reference}}/model.safetensors",
        f"{TRAINED}/{{reference}}/tokenizer.json",
        f"{TRAINED}/{{reference}}/tokenizer_config.json",
    log:
        f"logs/reference/{{reference}}/training.log",
    conda:
        "../../envs/torch.yaml"
    # Two trainings side by side end sooner than one after the other on two threads each.
    threads: 1
    params:
        job=reference_job("training", "train_reference"),
    script:
        "../../scripts/train_reference.py"


rule reference_evaluation:
    input:
        text=REFERENCE_TEXT,
        training=f"{TRAINED}/{{reference}}/training.parquet",
    output:
        f"{TRAINED}/{{reference}}/evaluation.parquet",
    log:
        f"logs/reference/{{reference}}/evaluation.log",
    conda:
        "../../envs/torch.yaml"
    threads: 2
    params:
        job=reference_job("evaluation", "evaluate_reference"),
    script:
        "../../scripts/evaluate_reference.py"


rule reference_card:
    input:
        text=REFERENCE_TEXT,
        training=f"{TRAINED}/{{reference}}/training.parquet",
        evaluation=f"{TRAINED}/{{reference}}/evaluation.parquet",
    output:
        f"{TRAINED}/{{reference}}/README.md",
    log:
        f"logs/reference/{{reference}}/card.log",
    conda:
        "../../envs/torch.yaml"
    params:
        job=reference_job("card", "describe_reference"),
    script:
        "../../scripts/describe_reference.py"


rule reference_passage:
    input:
        text=REFERENCE_TEXT,
    output:
        f"{TRAINED}/held_out_stories.txt",
    log:
        "logs/reference/passage.log",
    conda:
        "../../envs/torch.yaml"
    params:
        job=reference_job("passage", "write_passage"),
    script:
        "../../scripts/write_passage.py"
