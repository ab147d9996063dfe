//go:build unix

package etcdtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/go-singleton/singleton/internal/process"
)

const (
	startLimit = 60 * time.Second // how long a server may take until it serves
	askLimit   = time.Second      // and until it answers how it is
)

// Server is an etcd process. Its methods are safe for concurrent use, but those that start and end the process are meant
// for one goroutine at a time.
type Server struct {
	process.Process

	dir     string
	port    *process.Port // for clients
	peers   *process.Port // for the other members
	metrics *process.Port
	args    []string
}

// New starts a server on its own, with arguments beside the usual ones, and waits until it serves; Close ends it.
func New(args ...string) (*Server, error) {
	s, err := newServer()
	if err != nil {
		return nil, err
	}
	url := "http://" + s.peers.Addr()
	s.args = append(s.member("etcd", url, "etcd="+url), args...)
	if err := s.Restart(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func newServer() (*Server, error) {
	dir, err := os.MkdirTemp("", "etcdtest-")
	if err != nil {
		return nil, fmt.Errorf("etcdtest: %w", err)
	}
	return &Server{dir: dir, port: newPort(), peers: newPort(), metrics: newPort()}, nil
}

// member returns the arguments of a member of a cluster that the others reach at url.
func (s *Server) member(name, url, all string) []string {
	return []string{
		"--name", name, "--data-dir", s.data(), "--heartbeat-interval", "50", "--election-timeout", "500", "--unsafe-no-fsync",
		"--listen-metrics-urls", "http://" + s.metrics.Addr(), "--listen-peer-urls", "http://" + s.peers.Addr(),
		"--initial-advertise-peer-urls", url, "--initial-cluster", all, "--log-level", "warn",
	}
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// newPort returns a port that no other server of the tests takes.
func newPort() *process.Port { return process.NewPort(27_000, 30_000) }

// Addr returns the host and port for clients.
func (s *Server) Addr() string { return s.port.Addr() }

// Restart kills the process, starts another with the same ports and data, and waits until it serves.
func (s *Server) Restart() error {
	if err := s.Launch(); err != nil {
		return err
	}
	return s.Wait()
}

// RestartEmpty is Restart after the loss of all data.
func (s *Server) RestartEmpty() error {
	s.Kill()
	if err := os.RemoveAll(s.data()); err != nil {
		return fmt.Errorf("etcdtest: %w", err)
	}
	return s.Restart()
}

// Launch is Restart without the waiting; Wait waits.
func (s *Server) Launch() error {
	path, err := program()
	if err != nil {
		return err
	}
	scheme := "http://"
	for _, a := range s.args {
		if a == "--cert-file" {
			scheme = "https://"
		}
	}
	url := scheme + s.Addr()
	args := append([]string{path, "--listen-client-urls", url, "--advertise-client-urls", url}, s.args...)
	if err := s.Process.Launch(process.Command{Args: args}); err != nil {
		return fmt.Errorf("etcdtest: %w", err)
	}
	return nil
}

// Wait waits until the process that Launch has started serves.
func (s *Server) Wait() error {
	if err := s.Process.Wait(startLimit, s.Serves); err != nil {
		return fmt.Errorf("etcdtest: %w", err)
	}
	return nil
}

// Serves tells whether the server answers as one of a majority.
func (s *Server) Serves() bool {
	return strings.Contains(s.ask("/health?exclude=NOSPACE"), `"health":"true"`)
}

// Leads tells whether the server leads the cluster, as far as it knows.
func (s *Server) Leads() bool {
	return strings.Contains(s.ask("/metrics"), "\netcd_server_is_leader 1\n")
}

// Metric returns the sum of a metric of the server over its labels; labels that do not stand in a line leave it out.
func (s *Server) Metric(name string, labels ...string) (sum float64) {
	for line := range strings.Lines(s.ask("/metrics")) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		base, rest, _ := strings.Cut(key, "{")
		fits := base == name
		for _, l := range labels {
			fits = fits && strings.Contains(rest, l)
		}
		if n, err := strconv.ParseFloat(value, 64); fits && err == nil {
			sum += n
		}
	}
	return sum
}

// ask returns what the server says at a path of its metrics, or "" when it does not.
func (s *Server) ask(path string) string {
	ctx, cancel := context.WithTimeout(context.Background(), askLimit)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.metrics.Addr()+path, nil)
	if err != nil {
		return ""
	}
	t := &http.Transport{DisableKeepAlives: true}
	answer, err := (&http.Client{Transport: t}).Do(r)
	if err != nil {
		return ""
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return ""
	}
	return string(text)
}

// Close ends the process and removes its directory.
func (s *Server) Close() error {
	s.Kill()
	return errors.Join(s.port.Release(), s.peers.Release(), s.metrics.Release(), os.RemoveAll(s.dir))
}
