package cli

import (
	"strings"
	"testing"

	"github.com/go-singleton/singleton/internal/redistest"
)

// TestLeadersOfRunAnswer asks one to resign, whose command takes a moment for its end, and for what only cron can do.
func TestLeadersOfRunAnswer(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	const slow = `trap 'echo bye; exit 0' TERM; echo group $$; while :; do sleep 0.05; done`
	first := leads(t, server.URL(), slow, "--id", "m1")
	group := first.nth(1)
	second := leads(t, server.URL(), slow, "--id", "m2")
	second.await("msg=following")
	ask := func(args ...string) result {
		return call(t, nil, append(args, "--group", "g", "--store", server.URL())...)
	}
	for _, args := range [][]string{{"trigger", "report"}, {"pause", "--all"}, {"reset", "report"}, {"cancel", "report@2026-11-29T03:00:00Z"}} {
		if r := ask(args...); r.code != exitRefused || !strings.Contains(r.stderr, "refused: whoever leads this group runs no jobs") {
			t.Errorf("%q: exit code %d, %s", args, r.code, r.stderr)
		}
	}
	ask("resign").want(t, exitDone, "g: the leader steps down\n", "")
	second.nth(1)
	first.await("command is told to end", "kill_after=25s")
	if _, _, said := first.find("bye"); !said {
		t.Errorf("the command was not let end:\n%s", first.output())
	}
	none(t, group)
}
