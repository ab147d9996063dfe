package tools

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/go-singleton/singleton"

// packages are files of a made-up repository of the same form, and their imports; a path that begins with a slash is in
// the repository, and an import that ends with ! must be refused. Their import direction is that of CONTRIBUTING.md.
var packages = map[string]string{
	"store/a.go":              "fmt /internal/world!",
	"store/redisstore/a.go":   "fmt /store",
	"store/memstore/a.go":     "/store /internal/world /schedule!",
	"store/storetest/a.go":    "testing /store /store/memstore!",
	"schedule/a.go":           "time /store!",
	"internal/world/a.go":     "time",
	"internal/lifetime/a.go":  "/internal/world /schedule!",
	"election/a.go":           "/internal/lifetime /internal/world /store /store/memstore! /schedule!",
	"election/a_test.go":      "testing /store/memstore",
	"scheduler/a.go":          "/election /schedule /store /store/redisstore! /internal/redistest!",
	"scheduler/a_test.go":     "testing /store/memstore /internal/redistest",
	"dashboard/a.go":          "/scheduler /store/redisstore! /internal/redistest!",
	"metrics/a.go":            "/scheduler /election /dashboard!",
	"internal/redistest/a.go": "os/exec",
	"internal/sim/a.go":       "/scheduler /dashboard!",
	"internal/cli/a.go":       "/dashboard /metrics /scheduler /store/redisstore text/template! html/template!",
	"cmd/singleton/main.go":   "/internal/cli /scheduler!",
	"examples/election/a.go":  "/election /store/memstore",

	"store/etcdstore/cmd/singleton-etcd/main.go": "/internal/cli /store /store/etcdstore /scheduler!",
}

var refusal = regexp.MustCompile(`(?m)^(\S+?):\d+:\d+: import '([^']+)' is not allowed`)

// TestLintKeepsImportDirection shows that the rules match the files that they are meant for, and refuse no more.
func TestLintKeepsImportDirection(t *testing.T) {
	config, err := filepath.Abs("../.golangci.yml")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go.mod"), "module "+module+"\n\ngo 1.26.0\n")
	var want []string
	for file, imports := range packages {
		name := path.Base(path.Dir(file))
		if strings.HasPrefix(file, "examples/") || strings.Contains("/"+file, "/cmd/") {
			name = "main"
		}
		text := "package " + name + "\n\n"
		for p := range strings.FieldsSeq(imports) {
			p, refused := strings.CutSuffix(p, "!")
			if p[0] == '/' {
				p = module + p
			}
			if refused {
				want = append(want, file+" "+p)
			}
			text += fmt.Sprintf("import _ %q\n", p)
		}
		if strings.HasPrefix(text, "package main") {
			text += "\nfunc main() {}\n"
		}
		write(t, filepath.Join(dir, file), text)
	}

	linter := build(t)
	cmd := exec.CommandContext(t.Context(), linter, "run", "--config", config, "--enable-only", "depguard",
		"--path-mode", "abs", "--output.text.print-issued-lines=false", "./...")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	var got []string
	for _, m := range refusal.FindAllStringSubmatch(string(out), -1) {
		file, err := filepath.Rel(dir, m[1])
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, filepath.ToSlash(file)+" "+m[2])
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("refused:\n%s\nwant:\n%s\n%v\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"), err, out)
	}
}

// build returns the linter's program.
func build(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "golangci-lint")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "tool").CombinedOutput()
	if err != nil {
		t.Fatalf("building the linter: %v\n%s", err, out)
	}
	return program
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
