package singleton_test

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// reflected matches a function through which the linker cannot see which methods are called. One is enough for it to
// keep every exported method of every reachable type: all commands of go-redis, and a binary of twice the size.
var reflected = regexp.MustCompile(`(?m)^(\S+) <ReflectMethod>`)

// TestCommandKeepsMethodPruning fails when a dependency of the command, such as text/template, switches pruning off.
func TestCommandKeepsMethodPruning(t *testing.T) {
	if found := reflectedMethods(t, "./cmd/singleton"); len(found) > 0 {
		t.Errorf("the linker keeps all methods because of:\n%s", strings.Join(found, "\n"))
	}
}

// TestPruningCheckSeesTemplates shows on a program that uses text/template that the check above can fail.
func TestPruningCheckSeesTemplates(t *testing.T) {
	if len(reflectedMethods(t, "./testdata/templates")) == 0 {
		t.Error("found nothing in a program that executes a template")
	}
}

// reflectedMethods builds a program and returns each function that the linker marks.
func reflectedMethods(t *testing.T, program string) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(t.TempDir(), "program"), "-ldflags=-dumpdep", program)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out[:min(len(out), 2000)])
	}
	if !bytes.Contains(out, []byte(" -> ")) {
		t.Fatalf("the linker printed no dependencies of %s", program)
	}
	var found []string
	for _, m := range reflected.FindAllSubmatch(out, -1) {
		found = append(found, string(m[1]))
	}
	return found
}
