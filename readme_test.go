package singleton_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// around is what the README's program leaves out.
const around = `package main

import (
	"context"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-singleton/singleton/scheduler"
	"github.com/go-singleton/singleton/store/redisstore"
	"github.com/redis/go-redis/v9"
)

func writeInvoices(context.Context, time.Time) error { return nil }

`

// TestReadmeProgramCompiles builds the README's program as part of this module; it is to stay under 20 lines.
func TestReadmeProgramCompiles(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?ms)^```go\n(.*?)^```").FindAllSubmatch(text, -1)
	if len(blocks) != 1 {
		t.Fatalf("the README has %d Go programs, want 1", len(blocks))
	}
	program := string(blocks[0][1])
	if n := strings.Count(program, "\n"); n >= 20 {
		t.Errorf("the README's program has %d lines, want under 20", n)
	}

	dir := t.TempDir()
	source, overlay := filepath.Join(dir, "main.go"), filepath.Join(dir, "overlay.json")
	here, err := filepath.Abs("readme/main.go") // where the compiler is to see it
	if err != nil {
		t.Fatal(err)
	}
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {here: source}})
	if err != nil {
		t.Fatal(err)
	}
	for file, content := range map[string]string{source: around + program, overlay: string(replace)} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", "build", "-overlay", overlay, "-o", filepath.Join(dir, "program"), "./readme")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
