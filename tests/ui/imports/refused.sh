#!/bin/bash
# A GPT of 80 layers on 16 stages, five layers each.
ARGS=(
  --num-layers 80 --hidden-size 8192 --num-attention-heads 64 --vocab-size 50257
  --seq-length 2048 --max-position-embeddings 2048
  --pipeline-model-parallel-size 16
  --num-layers-per-virtual-pipeline-stage 2
  --micro-batch-size 1 --global-batch-size 256 --bf16
)
torchrun --nnodes 16 --nproc-per-node 8 pretrain_gpt.py "${ARGS[@]}"
