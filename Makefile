# The steps of .ci/run, one target each, with those that the gate leaves out (clients, ray, walkthroughs);
# `make` alone runs the whole gate.
STEPS := $(shell sed -n 's/^step_\([a-z0-9]*\)().*/\1/p' .ci/run)

.PHONY: all serve dist $(STEPS)
all:
	.ci/run
serve:
	go run . serve
# The files of a release, in the folder dist. VERSION=v1.2.0 names one, TARGETS=linux/amd64 builds less.
dist:
	cd tools/release && go run . -o $(CURDIR)/dist -version "$(VERSION)" -targets "$(TARGETS)"
$(STEPS):
	.ci/run $@
