#!/bin/bash
# The scheduler knows how many nodes there are, the tokenizer how many rows it has.
torchrun --nnodes $SLURM_NNODES --nproc-per-node 8 pretrain_gpt.py \
  --num-layers 32 --hidden-size 4096 --num-attention-heads 32 \
  --seq-length 4096 --max-position-embeddings 4096 \
  --tokenizer-type HuggingFaceTokenizer \
  --tensor-model-parallel-size 4 --pipeline-model-parallel-size 2 \
  --micro-batch-size 1 --global-batch-size 64 --bf16
