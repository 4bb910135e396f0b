# make demo   install what is missing, build, plan and launch-script Llama 3 405B
# make test   everything CI checks
# Both take LLVM=no: without the LLVM back end; numbers then come from the interpreter.

LLVM ?= yes

.PHONY: help demo test clean

help:
	@sed -n 's/^# //p' Makefile

demo:
	@LLVM=$(LLVM) tools/setup.sh demo

test:
	@LLVM=$(LLVM) tools/setup.sh test

clean:
	cargo clean
	rm -rf out
