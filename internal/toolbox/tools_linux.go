package toolbox

import (
	"context"

	"github.com/llmdo/workshop/internal/toolbox/fetch"
	"github.com/llmdo/workshop/internal/toolbox/files"
	"github.com/llmdo/workshop/tool"
)

// tools by name: arguments, result and function of each.
var tools = map[string]runner{
	tool.ReadFile:    plain(files.Read),
	tool.WriteFile:   checked(files.Write, files.CheckWrite),
	tool.EditFile:    checked(files.Edit, files.CheckEdit),
	tool.ListFiles:   plain(files.List),
	tool.SearchFiles: plain(files.Search),
	tool.FetchURL: typed[tool.FetchURLArgs, *tool.FetchURLResult]{f: func(ctx context.Context, s *session, a tool.FetchURLArgs) (*tool.FetchURLResult, error) {
		return fetch.Get(ctx, s.dial, &s.grant, a)
	}},
	tool.Shell: typed[tool.ShellArgs, *tool.ShellResult]{f: func(ctx context.Context, s *session, a tool.ShellArgs) (*tool.ShellResult, error) {
		return s.shell(ctx, a)
	}, dry: func(_ context.Context, s *session, a tool.ShellArgs) error { return s.checkShell(a) }, problems: shellProblems, timed: true},
}

// checked is a plain tool that can say beforehand why a call would fail.
func checked[A, R any](f func(context.Context, A) (R, error), dry func(context.Context, A) error) runner {
	t := plain(f).(typed[A, R])
	t.dry = func(ctx context.Context, _ *session, a A) error { return dry(ctx, a) }
	return t
}

// plain is a tool that needs nothing of the session.
func plain[A, R any](f func(context.Context, A) (R, error)) runner {
	return typed[A, R]{f: func(ctx context.Context, _ *session, a A) (R, error) { return f(ctx, a) }}
}
