# The steps of .ci/run, one target each; `make` alone runs the whole gate.
STEPS := $(shell sed -n 's/^STEPS=(\(.*\))$$/\1/p' .ci/run)

.PHONY: all serve $(STEPS)
all:
	.ci/run
serve:
	go run . serve
$(STEPS):
	.ci/run $@
