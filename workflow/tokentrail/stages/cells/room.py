"""The room of `cells`."""

from tokentrail.declare.room import Room, Stage
from tokentrail.declare.settings import StageSettings

ROOM = Room(
    place=250,
    about="The parts of a model.",
    heading="The models, cell by cell",
    settings=StageSettings,
    stages={
        "cells": Stage(
            "What is the model made of, cell by cell, as the pass that runs here reads it?", after="weights"
        ),
    },
)
