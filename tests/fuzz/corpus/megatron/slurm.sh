#!/bin/bash
#SBATCH -N 3 --gres=gpu:h100:8
#SBATCH --ntasks-per-node=1
NNODES=${SLURM_JOB_NUM_NODES:-1}
srun torchrun --nproc-per-node $SLURM_GPUS_ON_NODE --nnodes $NNODES pretrain_gpt.py \
    --num-layers 24 --hidden-size 2048 --num-attention-heads 16 --seq-length 2048 \
    --max-position-embeddings 2048 --vocab-size 50257 --micro-batch-size 1 \
    --global-batch-size $((SLURM_NTASKS * 96)) --bf16 --tensor-model-parallel-size 2
