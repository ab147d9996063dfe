package cli

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-singleton/singleton/internal/crontab"
)

// reloadEvery is how often the crontab is looked at. A look costs microseconds, and works for every way in which a file can
// change: written in place, renamed over, behind a symbolic link that is moved, on a network file system.
const reloadEvery = time.Second

// mostErrors is how many errors of a crontab are logged each time it is read: a wrong line may stand there a thousand times.
const mostErrors = 20

// reloader keeps the jobs of a replica what its crontab says.
type reloader struct {
	path    string
	reading *reading
	replace func([]crontab.Job) error
	log     *slog.Logger
	hangups chan os.Signal

	seen sight         // the file that jobs are from, or that was refused
	jobs []crontab.Job // those of the replica
}

// sight is what tells one state of a file from another.
type sight struct {
	info    fs.FileInfo // nil where there is none
	missing bool
}

// look looks at a file, through symbolic links.
func look(path string) sight {
	info, err := os.Stat(path)
	return sight{info: info, missing: errors.Is(err, fs.ErrNotExist)}
}

// same reports whether s and t are the same state.
func (s sight) same(t sight) bool {
	if s.info == nil || t.info == nil {
		return s.info == nil && t.info == nil && s.missing == t.missing
	}
	return os.SameFile(s.info, t.info) && s.info.Size() == t.info.Size() && s.info.ModTime().Equal(t.info.ModTime())
}

// again reports whether the file can be read more than once: a pipe cannot.
func (s sight) again() bool { return s.info == nil || s.info.Mode().IsRegular() }

// hangups takes SIGHUP from now to the end of the process, unless nohup(1) has it ignored.
func hangups() chan os.Signal {
	c := make(chan os.Signal, 1)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(c, syscall.SIGHUP)
	}
	return c
}

// watch reads the crontab again on SIGHUP, and when it has changed and stands still: somebody may be
// writing it.
func (r *reloader) watch(ctx context.Context) {
	ticker := time.NewTicker(reloadEvery)
	defer ticker.Stop()
	last := r.seen
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.hangups:
			last = look(r.path)
			r.read(last)
		case <-ticker.C:
			now := look(r.path)
			if now.same(last) && !now.same(r.seen) {
				r.read(now)
			}
			last = now
		}
	}
}

// read reads the crontab, which was seen in a state; what is wrong with it leaves the jobs as they were.
func (r *reloader) read(seen sight) {
	r.seen = seen
	if !seen.again() {
		r.log.Warn("the crontab is no regular file and cannot be read again; the jobs stay as they were", "file", r.path)
		return
	}
	file, writable, err := r.reading.readCrontab(r.path)
	if bad, ok := errors.AsType[*crontab.Errors](err); ok {
		shown := bad.List[:min(len(bad.List), mostErrors)]
		for _, e := range shown {
			r.log.Error("the crontab is wrong; the jobs stay as they were", "error", line(e.Error()))
		}
		if more := len(bad.List) - len(shown); more > 0 {
			r.log.Error("more is wrong with the crontab; singleton validate shows all of it", "file", r.path, "errors", more)
		}
		return
	}
	before := r.jobs
	if err == nil {
		err = r.take(file)
	}
	if err != nil {
		r.log.Error("the crontab cannot be used; the jobs stay as they were", "file", r.path, "error", err)
		return
	}
	added, changed, removed := compare(before, r.jobs)
	r.log.Info("the crontab was read again", "file", r.path, "jobs", len(r.jobs), "added", strings.Join(added, " "),
		"changed", strings.Join(changed, " "), "removed", strings.Join(removed, " "))
	tell(r.log, r.path, file, writable)
}

// take makes the jobs of a file those of the replica.
func (r *reloader) take(file *crontab.File) error {
	if err := r.replace(file.Jobs); err != nil {
		return err
	}
	r.jobs = file.Jobs
	return nil
}

// compare returns the names of the jobs that are new, that say something else, and that are gone.
func compare(before, after []crontab.Job) (added, changed, removed []string) {
	old := make(map[string]crontab.Job, len(before))
	for _, j := range before {
		old[j.Name] = j
	}
	for _, j := range after {
		was, known := old[j.Name]
		delete(old, j.Name)
		switch {
		case !known:
			added = append(added, j.Name)
		case !j.Same(was):
			changed = append(changed, j.Name)
		}
	}
	for _, j := range before {
		if _, gone := old[j.Name]; gone {
			removed = append(removed, j.Name)
		}
	}
	slices.Sort(added)
	slices.Sort(changed)
	slices.Sort(removed)
	return added, changed, removed
}
