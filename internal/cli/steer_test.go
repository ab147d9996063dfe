package cli

import (
	"bytes"
	"strings"
	"testing"
)

// Whoever does not wait is told that the run is accepted, however soon it ends: the exit code is 0 then.
func TestOnlyWhoWaitsIsToldHowARunHasEnded(t *testing.T) {
	ended := someHistory()[0]
	for _, tt := range []struct {
		json, wait bool
		want       string
	}{
		{false, false, "report@ is accepted; singleton history --group g report shows how it ends\n"},
		{false, true, "report@: failed: exit status 1 after 0.4 s\n"},
		{true, false, `{"request":"id","answer":"accepted","run":{`},
		{true, true, `{"request":"id","answer":"done","run":{`},
	} {
		var out bytes.Buffer
		s := &steering{target: target{group: "g"}, json: tt.json}
		if err := (&app{stdout: &out}).printAnswer(s, wish{wait: tt.wait}, "id", ended, ""); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); !strings.HasPrefix(got, tt.want) || !tt.json && got != tt.want || tt.json && !strings.Contains(got, `"outcome":"failed"`) {
			t.Errorf("json %v, wait %v: %s, want %s", tt.json, tt.wait, got, tt.want)
		}
	}
}
