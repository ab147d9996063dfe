//go:build unix

package redistest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/go-singleton/singleton/internal/clockjump"
	"github.com/go-singleton/singleton/internal/process"
)

var errPortTaken = errors.New("redistest: port taken")

// startLimit is how long a server may take until it accepts connections.
const startLimit = 20 * time.Second

// Config says which server to start; the zero value keeps nothing on disk.
type Config struct {
	AppendOnly bool       // keep an append-only file, fsynced before each reply, so that Restart finds all that was acknowledged
	TLS        *Authority // speak TLS only, with a certificate of this authority, to clients that have one, too; nil is plain
	Args       []string   // further arguments of redis-server, such as "--requirepass", "x"

	Clock *clockjump.Clock // the server's wall clock, on Linux; nil is the machine's

	SentinelPassword string // that Sentinels ask for; "" is none

	cluster  bool   // a node of a cluster; its bus is on the port after its own
	sentinel string // the file that a Sentinel is told what to watch by; "" is a server
}

// Server is a redis-server process. Its methods are safe for concurrent use, but those that start and end the process
// are meant for one goroutine at a time.
type Server struct {
	process.Process

	cfg   Config
	dir   string
	port  int
	ready string // what it says when it is
	ran   bool   // on this port

	mu      sync.Mutex
	clients []*redis.Client
	admin   *redis.Client // for what this package asks the server; nil until then
}

// New starts a server and waits until it accepts connections; Close ends it.
func New(cfg Config) (*Server, error) {
	if _, err := exec.LookPath("redis-server"); err != nil {
		return nil, fmt.Errorf("redistest: redis-server is not on the PATH; install it: apt-get install -y redis-server (%w)", err)
	}
	dir, err := os.MkdirTemp("", "redistest-")
	if err != nil {
		return nil, fmt.Errorf("redistest: %w", err)
	}
	s := &Server{cfg: cfg, dir: dir}
	for range 20 {
		s.port = 10_000 + 2*rand.IntN(8_500) // other servers of the tests take those above; the next one is a cluster's bus, where it has one
		if err = s.Restart(); err == nil {
			return s, nil
		}
		if !errors.Is(err, errPortTaken) {
			break
		}
	}
	return nil, errors.Join(err, os.RemoveAll(dir))
}

// Addr returns the server's host and port.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// URL returns the server's address as redis.ParseURL takes it.
func (s *Server) URL() string {
	if s.cfg.TLS != nil {
		return "rediss://" + s.Addr()
	}
	return "redis://" + s.Addr()
}

// Dir returns the directory that holds the server's data.
func (s *Server) Dir() string { return s.dir }

// Client returns a new client of the server with default options, less those that change changes; Close closes it.
func (s *Server) Client(change ...func(*redis.Options)) *redis.Client {
	opts := &redis.Options{Addr: s.Addr(), TLSConfig: s.cfg.TLS.Client()}
	if s.cfg.sentinel != "" {
		opts.Password = s.cfg.SentinelPassword
	}
	for _, c := range change {
		c(opts)
	}
	client := redis.NewClient(opts)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clients = append(s.clients, client)
	return client
}

// ask returns the client that this package asks the server with.
func (s *Server) ask() *redis.Client {
	s.mu.Lock()
	admin := s.admin
	s.mu.Unlock()
	if admin == nil {
		admin = s.Client(func(o *redis.Options) {
			o.ContextTimeoutEnabled, o.DialerRetries, o.ReadTimeout = true, 1, time.Second
		})
		s.mu.Lock()
		s.admin = admin
		s.mu.Unlock()
	}
	return admin
}

// Restart kills the process, starts another on the same port and directory, and waits until it accepts connections. What
// the directory holds is loaded: everything with AppendOnly, nothing otherwise.
func (s *Server) Restart() error {
	for limit := time.Now().Add(startLimit); ; {
		err := s.Launch()
		if err == nil {
			err = s.Wait()
		}
		if !errors.Is(err, errPortTaken) || !s.ran || time.Now().After(limit) {
			s.ran = s.ran || err == nil
			return err
		}
		<-time.After(look) // a child of the process that was killed may hold its port for a moment
	}
}

// RestartEmpty is Restart after the loss of all data; what a node knows of its cluster is not lost.
func (s *Server) RestartEmpty() error {
	s.Kill()
	files, err := filepath.Glob(filepath.Join(s.dir, "*"))
	if err != nil {
		return fmt.Errorf("redistest: %w", err)
	}
	for _, f := range files {
		if name := filepath.Base(f); name == "nodes.conf" || name == "sentinel.conf" {
			continue
		}
		if err := os.RemoveAll(f); err != nil {
			return fmt.Errorf("redistest: %w", err)
		}
	}
	return s.Restart()
}

// RestartTruncated is Restart after the loss of the last bytes of the append-only file, and with them of the commands that
// they belong to: what a crash of the machine costs where not every write is synced.
func (s *Server) RestartTruncated(bytes int64) error {
	s.Kill()
	var newest string
	for _, pattern := range []string{"*.aof", "appendonlydir/*.incr.aof"} { // of Redis 6.2, and of 7
		files, err := filepath.Glob(filepath.Join(s.dir, pattern))
		if err != nil {
			return fmt.Errorf("redistest: %w", err)
		}
		if len(files) > 0 {
			newest = files[len(files)-1]
		}
	}
	info, err := os.Stat(newest)
	if err != nil {
		return fmt.Errorf("redistest: the append-only file: %w", err)
	}
	if err := os.Truncate(newest, max(0, info.Size()-bytes)); err != nil {
		return fmt.Errorf("redistest: %w", err)
	}
	return s.Restart()
}

// Launch is Restart without the waiting, to see what a server answers that is still loading; Wait waits.
func (s *Server) Launch() error {
	s.Kill()
	args, ready, err := s.arguments()
	if err != nil {
		return fmt.Errorf("redistest: %w", err)
	}
	s.ready = ready
	c := process.Command{Args: append([]string{"redis-server"}, args...)}
	if s.cfg.Clock != nil {
		c.Env = s.cfg.Clock.Env()
	}
	if err := s.Process.Launch(c); err != nil {
		return fmt.Errorf("redistest: %w", err)
	}
	return nil
}

// arguments returns those of redis-server, and what it says when it is ready.
func (s *Server) arguments() (args []string, ready string, err error) {
	port := strconv.Itoa(s.port)
	if s.cfg.sentinel != "" {
		file := filepath.Join(s.dir, "sentinel.conf")
		if _, err := os.Stat(file); errors.Is(err, os.ErrNotExist) { // later it is the Sentinel's own memory
			text := "bind 127.0.0.1\ndir " + s.dir + "\n" + s.cfg.sentinel
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				return nil, "", err
			}
		}
		args, ready = []string{file, "--sentinel"}, "+monitor master"
	} else {
		persistence := "no"
		if s.cfg.AppendOnly {
			persistence = "yes"
		}
		args, ready = []string{
			"--bind", "127.0.0.1", "--dir", s.dir, "--save", "", "--appendonly", persistence, "--appendfsync", "always",
			"--daemonize", "no", "--logfile", "", "--repl-diskless-sync-delay", "0",
		}, "eady to accept connections"
		if s.cfg.cluster {
			args = append(args, "--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(s.port+1))
		}
	}
	if s.cfg.TLS == nil {
		args = append(args, "--port", port)
	} else {
		args = append(append(args, "--port", "0", "--tls-port", port), s.cfg.TLS.arguments()...)
	}
	return append(args, s.cfg.Args...), ready, nil
}

// Wait waits until the process that Launch has started accepts connections and has loaded its data.
func (s *Server) Wait() error {
	err := s.Process.Wait(startLimit, func() bool { return strings.Contains(s.Output(), s.ready) })
	if errors.Is(err, process.ErrEnded) && strings.Contains(s.Output(), "Address already in use") {
		return errPortTaken
	}
	if err != nil {
		return fmt.Errorf("redistest: %w", err)
	}
	return nil
}

// Close ends the process and its clients and removes its directory.
func (s *Server) Close() error {
	s.Kill()
	s.mu.Lock()
	clients := s.clients
	s.clients = nil
	s.mu.Unlock()
	errs := []error{os.RemoveAll(s.dir)}
	for _, c := range clients {
		if err := c.Close(); err != nil && !errors.Is(err, redis.ErrClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
