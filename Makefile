# make demo   install what is missing, build, plan and launch-script Llama 3 405B
# make test   everything CI checks
# make test-targets ENV=DIR   what is written, run and read by the frameworks themselves; DIR gets their environment, 6 GB
# The first two take LLVM=no: without the LLVM back end; numbers then come from the interpreter.

LLVM ?= yes

.PHONY: help demo test test-targets clean

help:
	@sed -n 's/^# //p' Makefile

demo:
	@LLVM=$(LLVM) tools/setup.sh demo

test:
	@LLVM=$(LLVM) tools/setup.sh test

test-targets:
	@ENV=$(ENV) tools/test_targets.sh

clean:
	cargo clean
	rm -rf out
