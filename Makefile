# The same steps as .ci/run, one target each; `make` alone runs the whole gate.
STEPS := install format vet build test race purego generate arm64 avx512 avxvnni fuzz smoke examples web lmeval

.PHONY: all serve $(STEPS)
all:
	.ci/run
serve:
	go run . serve
$(STEPS):
	.ci/run $@
