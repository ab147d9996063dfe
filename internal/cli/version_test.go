package cli

import (
	"encoding/json"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
)

func TestVersion(t *testing.T) {
	tail := runtime.Version() + ", " + runtime.GOOS + "/" + runtime.GOARCH + ")"
	for want, info := range map[string]*debug.BuildInfo{
		"singleton unknown (" + tail: nil,
		"singleton v1.2.3 (" + tail:  {Main: debug.Module{Version: "v1.2.3"}},
		"singleton (devel) (commit 0123456789ab with changes, " + tail: {
			Main:     debug.Module{Version: "(devel)"},
			Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.modified", Value: "true"}},
		},
	} {
		if got := readVersion(info).String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if r := call(t, nil, "version"); r.code != 0 || !strings.HasPrefix(r.stdout, "singleton ") {
		t.Errorf("exit code %d, %q", r.code, r.stdout)
	}
	if r, same := call(t, nil, "--version"), call(t, nil, "version"); r != same {
		t.Errorf("--version: exit code %d, %q; want %q", r.code, r.stdout, same.stdout)
	}
	text, err := json.Marshal(versionInfo{Version: "v1.2.3"})
	if err != nil || strings.Contains(string(text), "commit") {
		t.Errorf("%s: %v", text, err)
	}
	var v versionInfo
	if r := call(t, nil, "version", "--json"); json.Unmarshal([]byte(r.stdout), &v) != nil || v.Go != runtime.Version() {
		t.Errorf("%q is not the version", r.stdout)
	}
}
