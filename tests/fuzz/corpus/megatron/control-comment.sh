#!/bin/bash
#SBATCH --lodes=2
MODEL=meta-lma/Llama-3.1-8B
accelerate launch --config_file in/accelerate.yaml \
    train.py \
    --model_name_or_path $MODEL \
    --dataset_name wikitext \
    --per_device_train_batch_size 3 \
    --gradient_accumulation_steps 4 \
    --max_seq_length 4096 \
    --bf16 True \
    --learning_rate 2e-5 \
    --output_dir ./out
