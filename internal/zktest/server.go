//go:build unix

package zktest

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/go-singleton/singleton/internal/process"
)

const (
	jar = "/usr/share/java/zookeeper.jar" // of Debian's package; its manifest names the rest

	startLimit = 60 * time.Second // how long a server may take until it serves
	askLimit   = time.Second      // and until it answers how it is

	// Tick is the servers' tickTime. Sessions may last from two of it to a day and a half.
	Tick = 100 * time.Millisecond
)

// Server is a ZooKeeper process. Its methods are safe for concurrent use, but those that start and end the process are
// meant for one goroutine at a time.
type Server struct {
	process.Process

	dir  string
	port *process.Port
}

// New starts a server on its own and waits until it serves; Close ends it.
func New() (*Server, error) {
	if err := installed(); err != nil {
		return nil, err
	}
	s, err := newServer(0, newPort(), "")
	if err != nil {
		return nil, err
	}
	if err := s.Restart(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func installed() error {
	const remedy = "install it: apt-get install -y --no-install-recommends zookeeper"
	if _, err := exec.LookPath("java"); err != nil {
		return fmt.Errorf("zktest: java is not on the PATH; %s (%w)", remedy, err)
	}
	if _, err := os.Stat(jar); err != nil {
		return fmt.Errorf("zktest: ZooKeeper is missing; %s (%w)", remedy, err)
	}
	return nil
}

// newServer makes a directory for a server; id is 0 for one on its own, member has the lines that make it a member of an
// ensemble.
func newServer(id int, port *process.Port, member string) (*Server, error) {
	dir, err := os.MkdirTemp("", "zktest-")
	if err != nil {
		return nil, fmt.Errorf("zktest: %w", errors.Join(err, port.Release()))
	}
	s := &Server{dir: dir, port: port}
	config := "tickTime=" + strconv.FormatInt(Tick.Milliseconds(), 10) + `
initLimit=50
syncLimit=10
dataDir=` + dir + `
clientPort=` + port.String() + `
clientPortAddress=127.0.0.1
maxClientCnxns=0
maxSessionTimeout=129600000
admin.enableServer=false
4lw.commands.whitelist=*
` + member
	err = errors.Join(
		os.WriteFile(s.configFile(), []byte(config), 0o600),
		os.WriteFile(filepath.Join(dir, "myid"), []byte(strconv.Itoa(id)), 0o600),
	)
	if err != nil {
		return nil, errors.Join(err, port.Release(), os.RemoveAll(dir))
	}
	return s, nil
}

// newPort returns a port that no other server of the tests takes.
func newPort() *process.Port { return process.NewPort(30_000, 32_700) }

func (s *Server) configFile() string { return filepath.Join(s.dir, "zoo.cfg") }

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
	if err := os.RemoveAll(filepath.Join(s.dir, "version-2")); err != nil {
		return fmt.Errorf("zktest: %w", err)
	}
	return s.Restart()
}

// Launch is Restart without the waiting; Wait waits.
func (s *Server) Launch() error {
	err := s.Process.Launch(process.Command{Args: []string{
		"java", "-Xmx96m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData",
		"-Dzookeeper.forceSync=no", "-Dzookeeper.admin.enableServer=false",
		// An election that waits for a member that is cut off waits a second, not up to a minute.
		"-Dzookeeper.fastleader.maxNotificationInterval=1000", "-Dzookeeper.cnxTimeout=500", "-cp", jar,
		"org.apache.zookeeper.server.quorum.QuorumPeerMain", s.configFile(),
	}})
	if err != nil {
		return fmt.Errorf("zktest: %w", err)
	}
	return nil
}

// Wait waits until the process that Launch has started serves.
func (s *Server) Wait() error {
	if err := s.Process.Wait(startLimit, func() bool { return s.Mode() != "" }); err != nil {
		return fmt.Errorf("zktest: %w", err)
	}
	return nil
}

// Mode returns "standalone", "leader" or "follower", or "" when the server does not serve.
func (s *Server) Mode() string {
	for line := range strings.Lines(s.Ask("srvr")) {
		if mode, found := strings.CutPrefix(strings.TrimSpace(line), "Mode: "); found {
			return mode
		}
	}
	return ""
}

// Ask returns what the server answers to one of its four-letter commands, or "" when it does not.
func (s *Server) Ask(command string) string {
	c, err := net.DialTimeout("tcp", s.Addr(), askLimit)
	if err != nil {
		return ""
	}
	defer func() { _ = c.Close() }()
	if err := c.SetDeadline(time.Now().Add(askLimit)); err != nil {
		return ""
	}
	if _, err := io.WriteString(c, command); err != nil {
		return ""
	}
	answer, err := io.ReadAll(c)
	if err != nil {
		return ""
	}
	return string(answer)
}

// Close ends the process and removes its directory.
func (s *Server) Close() error {
	s.Kill()
	return errors.Join(s.port.Release(), os.RemoveAll(s.dir))
}
