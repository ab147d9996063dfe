package crontab

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-singleton/singleton/schedule"
	"github.com/go-singleton/singleton/store"
)

func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/*.cron")
	if err != nil || len(files) == 0 {
		f.Fatal(files, err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, false)
		f.Add(data, true)
	}
	f.Fuzz(func(t *testing.T, data []byte, seconds bool) {
		opts := Options{Seconds: seconds}
		file, err := Parse("jobs.cron", data, opts)
		if err == nil {
			checkFile(t, file, lines(data), opts)
		} else if all, ok := errors.AsType[*Errors](err); ok {
			checkErrors(t, all, lines(data))
		} else {
			t.Fatalf("%v is no *Errors", err)
		}

		// The same file from another system says the same.
		if bytes.ContainsRune(data, '\r') || 2*len(data) > MaxSize {
			return
		}
		other, err2 := Parse("jobs.cron", bytes.ReplaceAll(data, []byte("\n"), []byte("\r\n")), opts)
		if (err == nil) != (err2 == nil) || err != nil && err.Error() != err2.Error() {
			t.Fatalf("with CRLF: %v\nwith LF: %v", err2, err)
		}
		if err == nil && !reflect.DeepEqual(file, other) {
			t.Fatalf("with CRLF: %+v\nwith LF: %+v", other, file)
		}
	})
}

func lines(data []byte) []string {
	text := strings.TrimPrefix(string(data), "\ufeff")
	all := strings.Split(text, "\n")
	for i := range all {
		all[i] = strings.TrimRight(all[i], "\r")
	}
	return all
}

func checkFile(t *testing.T, file *File, lines []string, opts Options) {
	names := map[string]bool{}
	last := 0
	for _, j := range file.Jobs {
		if err := store.CheckName("job", j.Name); err != nil || names[j.Name] {
			t.Errorf("name %q: taken %v, %v", j.Name, names[j.Name], err)
		}
		names[j.Name] = true
		again, err := schedule.Parse(j.Spec, schedule.Options{Seconds: opts.Seconds, Zone: j.Zone})
		if err != nil || again.Key() != j.Expr.Key() {
			t.Errorf("spec %q: %v", j.Spec, err)
		}
		if j.Line <= last || j.Line > len(lines) || !strings.Contains(lines[j.Line-1], j.Command) {
			t.Errorf("%q is not on line %d", j.Command, j.Line)
		}
		last = j.Line
		if j.Command == "" || strings.Trim(j.Command, " \t") != j.Command || strings.ContainsAny(j.Command, "\x00\n") {
			t.Errorf("command %q", j.Command)
		}
		if !strings.HasPrefix(j.Shell, "/") {
			t.Errorf("shell %q", j.Shell)
		}
		for i, v := range j.Env {
			name, _, ok := strings.Cut(v, "=")
			if !ok || name == "" || i > 0 && strings.HasPrefix(j.Env[i-1], name+"=") {
				t.Errorf("environment %q", j.Env)
			}
		}
		if j.CatchUp == "all" && (j.Overlap == "skip" || j.Overlap == "replace") || j.Retry < 0 || j.Retry > 100 {
			t.Errorf("policies %+v", j.Policies)
		}
	}
}

func checkErrors(t *testing.T, all *Errors, lines []string) {
	if len(all.List) == 0 || all.Fine < 0 || all.Fine > all.Jobs || all.Jobs > len(lines) {
		t.Errorf("%d errors, %d of %d", len(all.List), all.Fine, all.Jobs)
	}
	for _, e := range all.List {
		if e.Line < 1 || e.Line > len(lines) || e.Text != lines[e.Line-1] {
			t.Fatalf("line %d is not %q", e.Line, e.Text)
		}
		if e.Column < 1 || e.Length < 0 || e.Column-1+e.Length > len(e.Text) {
			t.Errorf("%d bytes from column %d lie outside of %q", e.Length, e.Column, e.Text)
		}
		if e.Reason == "" || !utf8.ValidString(e.Reason) || strings.ContainsFunc(e.Reason, func(r rune) bool { return r < ' ' }) {
			t.Errorf("reason %q", e.Reason)
		}
		shown := strings.Split(e.Excerpt(), "\n")
		if len(shown) != 2 || !strings.Contains(shown[1], "^") {
			t.Errorf("excerpt %q", shown)
		}
		if !utf8.ValidString(shown[0]) || strings.ContainsFunc(shown[0], func(r rune) bool { return r < ' ' && r != '\t' }) {
			t.Errorf("excerpt %q", shown[0])
		}
	}
}
