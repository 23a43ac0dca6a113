#!/bin/bash
ARGS=(
    --num-layers 24
    --hidden-size 2048
torchrun pretrain_gpt.py ${ARGS[@]}
