package memory

import "testing"

func TestWeightsMayTakePartOfWhatIsNotPromised(t *testing.T) {
	all := ForWeights(0)
	if all <= 0 || Physical() > 0 && all >= Physical() {
		t.Errorf("weights may take %d bytes of %d", all, Physical())
	}
	if n := ForWeights(1 << 60); n != 0 {
		t.Errorf("with everything promised weights may take %d bytes", n)
	}
}
