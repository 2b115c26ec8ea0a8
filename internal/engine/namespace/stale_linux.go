package namespace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/api"
	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/client"
)

// Stale is a project in the state directory that isn't as `up` or `down` leave one.
type Stale struct {
	Project string // empty: a directory that is being removed
	What    string
	// Broken: commands on it fail, or wait. Otherwise the next one clears it up.
	Broken bool
}

// lookTime is how long a supervisor may take to respond to StaleProjects.
const lookTime = time.Second

// StaleProjects looks at all projects of a state directory, and changes nothing.
func StaleProjects(ctx context.Context, stateDir string) ([]Stale, error) {
	entries, err := os.ReadDir(stateDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []Stale
	for _, entry := range entries {
		name := entry.Name()
		if strings.HasPrefix(name, oldPrefix) {
			out = append(out, Stale{What: filepath.Join(stateDir, name) + " is what a killed command was removing"})
			continue
		}
		if l := staleOf(ctx, filepath.Join(stateDir, name)); entry.IsDir() && l.What != "" {
			l.Project = name
			out = append(out, l)
		}
	}
	return out, nil
}

func staleOf(ctx context.Context, dir string) Stale {
	lives, err := client.Lives(dir)
	if err != nil {
		return Stale{What: err.Error(), Broken: true}
	}
	f, err := client.State(dir)
	if _, other := errors.AsType[*client.FormError](err); err != nil && !other {
		return Stale{What: "its state can't be read: " + err.Error(), Broken: true}
	}
	if !lives {
		if slices.ContainsFunc(f.Containers, func(c api.Seen) bool { return c.State == api.Running || c.State == api.Restarting }) {
			return Stale{What: "its supervisor was killed, or the machine restarted, while it was up"}
		}
		return Stale{}
	}
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	c, err := client.Dial(ctx, dir)
	if err == nil {
		_, err = c.Hello(ctx)
	}
	if err != nil && !errors.Is(err, client.ErrNone) {
		return Stale{What: fmt.Sprintf("its supervisor doesn't respond: %v", err), Broken: true}
	}
	return Stale{}
}
