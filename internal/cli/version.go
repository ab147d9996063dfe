package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// versionInfo is what `version --json` prints.
type versionInfo struct {
	Version  string `json:"version"`          // of the module; "(devel)" for a build from a checkout without tags
	Commit   string `json:"commit,omitempty"` // absent where the build does not know it
	Modified bool   `json:"modified"`         // the checkout held changes
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

func (a *app) newVersionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Long:    "Prints the version of the module, the commit it was built from, and the version of Go.",
		Example: "  singleton version\n  singleton version --json",
		Args:    arguments(0, 0, ""),
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return a.printJSON(thisVersion())
			}
			return a.printVersion()
		},
	}
	toggle{&asJSON}.register(cmd.Flags(), "json", "print a JSON object")
	return cmd
}

func (a *app) printVersion() error {
	_, err := fmt.Fprintln(a.stdout, thisVersion())
	return err
}

func thisVersion() versionInfo {
	info, _ := debug.ReadBuildInfo() // nil outside of a module
	return readVersion(info)
}

func readVersion(info *debug.BuildInfo) versionInfo {
	v := versionInfo{Version: "unknown", Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	if info == nil {
		return v
	}
	if info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}

// String returns one line for people.
func (v versionInfo) String() string {
	commit := ""
	if v.Commit != "" {
		commit = fmt.Sprintf("commit %.12s, ", v.Commit)
		if v.Modified {
			commit = fmt.Sprintf("commit %.12s with changes, ", v.Commit)
		}
	}
	return fmt.Sprintf("singleton %s (%s%s, %s/%s)", v.Version, commit, v.Go, v.OS, v.Arch)
}
