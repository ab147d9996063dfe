package mutants

import (
	"bufio"
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// verdict is what a test has said of a mutant.
type verdict string

const (
	killed    verdict = "killed" // a test has failed by assertion
	survived  verdict = "SURVIVED"
	notBuilt  verdict = "NOT BUILT"
	timedOut  verdict = "TIMED OUT"
	panicked  verdict = "PANICKED"
	outside   verdict = "FAILED OUTSIDE A TEST" // a goroutine that is left over, an exit
	nothing   verdict = "NO TEST RAN"
	goTrouble verdict = "GO FAILED"
)

// event is a line of go test -json.
type event struct {
	Action, Test, Output, FailedBuild string
}

// judge reads the output of go test -json; test is the first that failed, the innermost of its kind.
func judge(output []byte) (v verdict, test string) {
	ran, failed := false, false
	v = survived
	lines := bufio.NewScanner(bytes.NewReader(output))
	lines.Buffer(nil, 1<<22)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue
		}
		switch {
		case e.Action == "build-fail" || e.FailedBuild != "":
			return notBuilt, ""
		case strings.HasPrefix(e.Output, "panic: test timed out"):
			return timedOut, e.Test
		case strings.HasPrefix(e.Output, "panic: "), strings.HasPrefix(e.Output, "fatal error: "):
			if v != timedOut {
				v = panicked
			}
		case e.Action == "run":
			ran = true
		case e.Action == "fail" && e.Test == "":
			failed = true
		case e.Action == "fail" && test == "":
			test = e.Test
		}
	}
	switch {
	case lines.Err() != nil:
		return goTrouble, ""
	case v == panicked:
		return panicked, test
	case test != "" && failed:
		return killed, test
	case failed:
		return outside, ""
	case !ran:
		return nothing, ""
	}
	return survived, ""
}

// text returns what the tests have printed.
func text(output []byte) string {
	var b strings.Builder
	for line := range bytes.Lines(output) {
		var e event
		if json.Unmarshal(line, &e) != nil {
			b.Write(line)
			continue
		}
		b.WriteString(e.Output)
	}
	return b.String()
}

func TestJudge(t *testing.T) {
	const (
		run  = `{"Action":"run","Test":"TestA"}` + "\n"
		fail = `{"Action":"fail","Test":"TestA/b"}` + "\n" + `{"Action":"fail","Test":"TestA"}` + "\n" + `{"Action":"fail"}` + "\n"
	)
	for _, c := range []struct {
		output string
		want   verdict
		test   string
	}{
		{run + `{"Action":"pass","Test":"TestA"}` + "\n" + `{"Action":"pass"}`, survived, ""},
		{run + fail, killed, "TestA/b"},
		{run + `{"Action":"output","Test":"TestA","Output":"    a_test.go:1: log says panic: x\n"}` + "\n" + fail, killed, "TestA/b"},
		{run + `{"Action":"output","Test":"TestA","Output":"panic: nil map\n"}` + "\n" + fail, panicked, "TestA/b"},
		{run + `{"Action":"output","Test":"TestA","Output":"fatal error: all goroutines are asleep\n"}` + "\n" + fail, panicked, "TestA/b"},
		{run + `{"Action":"output","Test":"TestA","Output":"panic: test timed out after 1s\n"}` + "\n" + fail, timedOut, "TestA"},
		{run + `{"Action":"pass","Test":"TestA"}` + "\n" + `{"Action":"fail"}`, outside, ""},
		{`{"Action":"build-fail"}` + "\n" + `{"Action":"fail","FailedBuild":"x"}`, notBuilt, ""},
		{`{"Action":"pass"}`, nothing, ""},
	} {
		if v, test := judge([]byte(c.output)); v != c.want || test != c.test {
			t.Errorf("%s\ngot %s %q, want %s %q", c.output, v, test, c.want, c.test)
		}
	}
}
