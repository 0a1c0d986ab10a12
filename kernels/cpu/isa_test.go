package cpu

import (
	"os"
	"testing"
)

func TestTheRequiredInstructionSetIsReached(t *testing.T) {
	want := os.Getenv("LUTRA_REQUIRE")
	if want == "" {
		t.Skip("LUTRA_REQUIRE is not set")
	}
	for _, isa := range Supported() {
		if isa.String() == want {
			return
		}
	}
	t.Fatalf("LUTRA_REQUIRE=%s, but this machine has only %v", want, Supported())
}
