#!/bin/bash
# qwen3-8b on dgx-a100-80g:2, 16 devices.
# stepcast predict --from ds_config.json --from deepspeed.sh --model qwen3-8b --cluster dgx-a100-80g:2 --software megatron-core --engine fast
# train.py is a script with arguments of HuggingFace's Trainer: append model,
# data, learning rates.
deepspeed --num_nodes 2 --num_gpus 8 train.py \
    --deepspeed ds_config.json \
    --per_device_train_batch_size 2 \
    --gradient_accumulation_steps 2 \
    --max_seq_length 8192 \
    --bf16 true \
    --gradient_checkpointing true
