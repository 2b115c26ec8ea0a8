package namespace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/api"
	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/logfile"
)

// Logs writes the logs of services, of all if none is named.
func (e *Engine) Logs(ctx context.Context, project string, services []string, o engine.LogsOptions) error {
	options, err := logOptions(o, time.Now())
	if err != nil {
		return err
	}
	seen, err := e.Observe(ctx, project)
	if err != nil {
		return err
	}
	return engine.WriteLogs(ctx, seen, services, o, func(ctx context.Context, c engine.Container, stdout, stderr io.Writer) error {
		times := stamps{}
		err := logfile.Read(ctx, filepath.Join(e.dir(project), api.LogDir, c.Service), options, func(entry logfile.Entry) error {
			w := stdout
			if entry.Stream == logfile.Stderr {
				w = stderr
			}
			text := entry.Text
			if o.Timestamps {
				text = times.add(entry)
			}
			_, err := io.WriteString(w, text)
			return err
		})
		if errors.Is(err, fs.ErrNotExist) {
			return nil // no output yet
		}
		return err
	})
}

// timestamp is Docker's layout of times before log lines.
const timestamp = "2006-01-02T15:04:05.000000000Z07:00"

// stamps writes the time before each line. It holds the streams whose last entry was no end of
// a line.
type stamps map[string]bool

func (s stamps) add(e logfile.Entry) string {
	within := s[e.Stream]
	s[e.Stream] = !strings.HasSuffix(e.Text, "\n")
	if within {
		return e.Text
	}
	return e.Time.Format(timestamp) + " " + e.Text
}

// logOptions parses --tail and --since as Docker does.
func logOptions(o engine.LogsOptions, now time.Time) (logfile.Options, error) {
	out := logfile.Options{Tail: logfile.All, Follow: o.Follow}
	if o.Tail != "" && o.Tail != "all" {
		n, err := strconv.Atoi(o.Tail)
		if err != nil {
			return out, fmt.Errorf("--tail %q is neither a number nor all", o.Tail)
		}
		out.Tail = n
		if n < 0 {
			out.Tail = logfile.All // like Docker
		}
	}
	if o.Since == "" {
		return out, nil
	}
	if d, err := time.ParseDuration(o.Since); err == nil {
		out.Since = now.Add(-d)
		return out, nil
	}
	for _, form := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02"} {
		if t, err := time.ParseInLocation(form, o.Since, time.Local); err == nil {
			out.Since = t
			return out, nil
		}
	}
	return out, fmt.Errorf("--since %q is neither a time (RFC 3339) nor a duration like 10m", o.Since)
}
