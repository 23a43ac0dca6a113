#!/bin/bash
torchrun --nproc-per-node 8 --nnodes $NNODES pretrain_gpt.py \
    --num-layers 24 --hidden-size $HIDDEN --num-attention-heads 16 \
    --seq-length 2048 --max-position-embeddings 2048 --vocab-size 50257 --micro-batch-size 4 --global-batch-size 512
