# The steps of .ci/run, one target each, with those that the gate leaves out (clients, ray);
# `make` alone runs the whole gate.
STEPS := $(shell sed -n 's/^step_\([a-z0-9]*\)().*/\1/p' .ci/run)

.PHONY: all serve $(STEPS)
all:
	.ci/run
serve:
	go run . serve
$(STEPS):
	.ci/run $@
