package cli

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/internal/doctor"
)

func TestDoctorSaysWhatStopsAServer(t *testing.T) {
	t.Setenv("LUTRA_SERVER_ADDR", "127.0.0.1:0")
	var r doctor.Report
	if err := json.Unmarshal([]byte(against(t, "", "doctor", "--quick", "--json")), &r); err != nil {
		t.Fatal(err)
	}
	if r.Machine.Threads < 1 || r.Machine.Memory == 0 || len(r.Findings) < 5 || len(r.Expected) > 0 {
		t.Errorf("doctor says %+v", r)
	}
	s := serving(t, "--model", "lutra-tiny-s")
	t.Setenv("LUTRA_SERVER_ADDR", strings.TrimPrefix(s.base, "http://"))
	if out := against(t, "", "doctor", "--quick"); !strings.Contains(out, "where a server is ready") {
		t.Errorf("beside a server doctor says\n%s", out)
	}
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	t.Setenv("LUTRA_SERVER_ADDR", other.Listener.Addr().String())
	if status, got := complain(t, "doctor", "--quick"); status != 1 || !strings.Contains(got, errStops.Error()) {
		t.Errorf("where another program listens: status %d, %s", status, got)
	}
}
