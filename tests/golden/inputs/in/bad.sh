torchrun --nproc_per_node 8 pretrain_gpt.py \
    --num-layers $LAYERS --hidden-sise 2048 \
    --num-attention-heads sixteen
