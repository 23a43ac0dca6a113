#!/bin/bash
# A 1.3B GPT on four nodes.
#SBATCH --nodes=4
GPUS_PER_NODE=8
NNODES=4
TP=2
LAUNCH=(--nproc_per_node $GPUS_PER_NODE --nnodes $NNODES)
MODEL=(
    --num-layers 24
    --hidden-size 2048
    --num-attention-heads 16
    --seq-length 2048
    --max-position-embeddings 2048
    --vocab-size 50257
)
CUDA_LAUNCH_BLOCKING=1 torchrun ${LAUNCH[@]} pretrain_gpt.py \
    ${MODEL[@]} --bf16 --use-flash-attn \
    --tensor-model-parallel-size $TP --sequence-parallel \
    --micro-batch-size 2 --global-batch-size $((NNODES * 64)) \
    $EXTRA --data-path ${DATA:-data}
