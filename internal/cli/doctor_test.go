package cli

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-singleton/singleton/internal/redistest"
	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/redisstore"
)

// doctor runs `singleton doctor --json` about group g and returns its exit code and what is not well.
func doctor(t *testing.T, url string, args ...string) (code int, bad []finding) {
	t.Helper()
	r := call(t, nil, append([]string{"doctor", "--store", url, "--group", "g", "--json"}, args...)...)
	var e examination
	if err := json.Unmarshal([]byte(r.stdout), &e); err != nil || r.stderr != "" {
		t.Fatalf("%v: %s%s", err, r.stdout, r.stderr)
	}
	if e.Group != "g" || e.Wrong != (r.code == exitFailed) || len(e.Findings) == 0 {
		t.Errorf("exit code %d, %s", r.code, r.stdout)
	}
	return r.code, slices.DeleteFunc(e.Findings, func(f finding) bool { return f.Level == redisstore.LevelOK })
}

func TestDoctorPrintsALineForEachCheck(t *testing.T) {
	server := redistest.Start(t, redistest.Args("--requirepass", canary))
	url := "redis://:" + canary + "@" + server.Addr()
	r := call(t, map[string]string{"REDIS_URL": url}, "doctor", "--group", "g")
	var words, checks []string
	for text := range strings.Lines(r.stdout) {
		f := strings.Fields(text)
		words, checks = append(words, f[0]), append(checks, f[1])
	}
	want := []string{"version", "role", "replicas", "persistence", "memory", "clock", "latency", "permissions", "writing", "data", "records"}
	if r.code != exitDone || !slices.Equal(checks, want) || words[3] != "WARN" || !strings.Contains(r.stdout, "CONFIG SET appendonly yes") {
		t.Errorf("exit code %d, %s%s", r.code, r.stdout, r.stderr)
	}
	words[3] = "OK"
	if len(slices.Compact(words)) != 1 {
		t.Errorf("all but the persistence is well:\n%s", r.stdout)
	}
	if r := call(t, nil, "doctor", "--store", url); r.code != exitDone || strings.Contains(r.stdout, "  records  ") {
		t.Errorf("without a group: exit code %d, %s%s", r.code, r.stdout, r.stderr)
	}
}

func TestDoctorSaysWhatIsWrongWithAGroup(t *testing.T) {
	server := redistest.Start(t, redistest.AppendOnly())
	client := server.Client()
	for _, c := range []struct {
		name          string
		breaks        []any
		check         string
		found, remedy string
	}{
		{"nothing", []any{"PING"}, "", "", ""},
		{"a foreign lease", []any{"RPUSH", "singleton:{g}:lease", "x"}, "data", "holds a list", "DEL singleton:{g}:lease"},
		{"another's lock", []any{"SET", "singleton:{g}:lease", "locked"}, "data", "singleton:{g}:lease", ""},
		{"a foreign bucket", []any{"SET", "singleton:{g}:r:job", "x"}, "records", "WRONGTYPE singleton:{g}:r:job holds a string", ""},
		{"a record that is none", []any{"HSET", "singleton:{g}:r:job", "report", "x"}, "records", "job report: ", "newest version"},
		{"a newer record", []any{"HSET", "singleton:{g}:r:job", "report", `{"v":99}`}, "records", "job report: ", "newest version"},
		{"a run that is none", []any{"HSET", "singleton:{g}:r:run", "x", "x"}, "records", "an open run: ", "newest version"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := client.Do(t.Context(), c.breaks...).Err(); err != nil {
				t.Fatal(err)
			}
			defer client.FlushAll(t.Context())
			code, bad := doctor(t, server.URL())
			if c.check == "" {
				if code != exitDone || len(bad) != 0 {
					t.Errorf("exit code %d, %+v", code, bad)
				}
				return
			}
			if code != exitFailed || len(bad) != 1 || bad[0].Check != c.check || bad[0].Level != redisstore.LevelFail ||
				!strings.Contains(bad[0].Found, c.found) || !strings.Contains(bad[0].Remedy, c.remedy) {
				t.Errorf("exit code %d, got %+v, want %s: %q, %q", code, bad, c.check, c.found, c.remedy)
			}
			for _, name := range []string{"redisstore: ", "scheduler: ", "asking again"} {
				if strings.Contains(bad[0].Found, name) {
					t.Errorf("%q is for programmers: %s", name, bad[0].Found)
				}
			}
		})
	}
}

// TestDoctorTriesWhatReplicasAndAClusterAreFor: each line has its remedy.
func TestDoctorTriesWhatReplicasAndAClusterAreFor(t *testing.T) {
	t.Parallel()
	primary := redistest.Start(t, redistest.AppendOnly())
	_, port, _ := strings.Cut(primary.Addr(), ":")
	replica := redistest.Start(t, redistest.AppendOnly(), redistest.Args("--replicaof", "127.0.0.1", port))
	for { // until it has what there is
		n, err := primary.Client().Wait(t.Context(), 1, time.Second).Result()
		if err != nil {
			t.Fatal(err)
		}
		if n == 1 {
			break
		}
	}
	replica.Stop()
	node := redistest.Start(t, redistest.AppendOnly(), redistest.Args("--cluster-enabled", "yes"))
	admin := node.Client()
	for _, order := range [][]any{
		{"CLUSTER", "ADDSLOTSRANGE", 0, 16383},
		{"ACL", "SETUSER", "unmapped", "on", ">pw", "~*", "&*", "+@all", "-cluster|slots"},
		{"ACL", "SETUSER", "unasked", "on", ">pw", "~*", "&*", "+@all", "-asking"},
	} {
		if err := admin.Do(t.Context(), order...).Err(); err != nil {
			t.Fatalf("%v: %v", order, err)
		}
	}
	for !strings.Contains(admin.ClusterInfo(t.Context()).Val(), "cluster_state:ok") {
		if err := t.Context().Err(); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ url, check, found, remedy string }{
		{primary.URL() + "?min_replicas=1&replica_timeout=50ms", "acknowledgement", "0 of 1 replicas have received a write within 50ms", "min_replicas"},
		{"redis+cluster://unmapped:pw@" + node.Addr(), "permissions", "may not run cluster|slots", "ACL SETUSER its-name +cluster|slots"},
		{"redis+cluster://unasked:pw@" + node.Addr(), "permissions", "may not run asking", "ACL SETUSER its-name +asking"},
	} {
		code, bad := doctor(t, c.url)
		if code != exitFailed || len(bad) != 1 || bad[0].Check != c.check || !strings.Contains(bad[0].Found, c.found) ||
			!strings.Contains(bad[0].Remedy, c.remedy) {
			t.Errorf("%s: exit code %d, %+v", c.url, code, bad)
		}
	}
}

func TestDoctorSaysThatAStoreCannotBeAsked(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Args("--requirepass", "x"+canary))
	for url, want := range map[string]string{
		"redis://u:" + canary + "@127.0.0.1:1":     "connection refused; is it running, and the URL right?",
		"redis://:" + canary + "@" + server.Addr(): "set those that it knows",
	} {
		code, bad := doctor(t, url)
		if code != exitFailed || len(bad) != 1 || bad[0].Check != "connection" || !strings.Contains(bad[0].Found, want) {
			t.Errorf("exit code %d, got %+v, want %q", code, bad, want)
		}
	}
	server.Stop() // frozen
	r := call(t, nil, "doctor", "--store", server.URL())
	if r.code != exitFailed || !strings.HasPrefix(r.stdout, "FAIL  connection  ") || !strings.Contains(r.stdout, "does not answer in time") {
		t.Errorf("exit code %d, %s", r.code, r.stdout)
	}
}

func TestDoctorKnowsAStoreInMemory(t *testing.T) {
	code, bad := doctor(t, "memory:")
	if code != exitDone || len(bad) != 1 || bad[0].Check != "store" || bad[0].Level != redisstore.LevelWarn {
		t.Errorf("exit code %d, %+v", code, bad)
	}
}

func TestDoctorRefusesBadFlags(t *testing.T) {
	for _, args := range [][]string{{"--lease", "0s"}, {"--group", "a b"}, {"g"}, {"--store", "http://x"}} {
		if r := call(t, nil, append([]string{"doctor"}, args...)...); r.code != exitUsage || r.stdout != "" || strings.Count(r.stderr, "\n") != 1 {
			t.Errorf("%v: exit code %d, %s%s", args, r.code, r.stdout, r.stderr)
		}
	}
}

// silent is a store that answers nothing, as long as it is let.
type silent struct{ store.Store }

func (silent) Leader(ctx context.Context, _ string) (store.Leader, error) {
	<-ctx.Done()
	return store.Leader{}, ctx.Err()
}

// TestDoctorGivesUpASilentStoreSoon is about stores whose clients go on trying until the end of the time.
func TestDoctorGivesUpASilentStoreSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		found, err := (&opened{Store: silent{}}).examine(t.Context(), "g", 15*time.Second)
		if took := time.Since(began); err == nil || len(found) > 0 || took != askLimit {
			t.Errorf("%+v and %v after %v, want an error after %v", found, err, took, askLimit)
		}
	})
}
