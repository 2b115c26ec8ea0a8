package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/diag"
	"github.com/llmdo/workshop/internal/diag/write"
	"github.com/llmdo/workshop/workshop"
)

// load finds and reads the workshop of a command. Problems go to the standard
// error; with errors among them the command ends with code 3.
func (a *program) load(ctx context.Context) (*source, error) {
	file, err := a.findFile()
	if err != nil {
		return nil, err
	}
	s, err := a.readSource(ctx, file)
	if err != nil {
		return nil, err
	}
	list, texts := s.shown()
	if a.set.quiet && !list.HasErrors() {
		return s, nil
	}
	if err := a.printDiagnostics(list, texts); err != nil {
		return nil, err
	}
	if n := list.Count(diag.Error); n > 0 {
		return nil, app.Fail(codeOf(list), "%s is invalid: %s", a.shown(file), count(n, "error"))
	}
	return s, nil
}

// printDiagnostics writes a list to the standard error as text.
func (a *program) printDiagnostics(list diag.List, texts map[string][]byte) error {
	if len(list) == 0 {
		return nil
	}
	return write.Text(a.Err, list, write.TextOptions{
		Sources: texts, Color: a.colorErr(), Width: width(a.Err),
	})
}

// compiled is a workshop on its way to an engine.
type compiled struct {
	*source
	project  string // name on the engine
	compiled *compose.Compiled
	// notChecked: a source was not searched to its end.
	notChecked bool
}

// compile loads and compiles the workshop, and checks that the promises hold
// in the result before anything else sees it.
func (a *program) compile(ctx context.Context) (*compiled, error) {
	s, err := a.load(ctx)
	if err != nil {
		return nil, err
	}
	return a.compileSource(s)
}

func (a *program) compileSource(s *source) (*compiled, error) {
	c, err := compileWorkshop(s.w)
	if err != nil {
		return nil, err
	}
	project, err := a.projectName(s.w.Name.V, s.dir)
	if err != nil {
		return nil, err
	}
	a.on = whereabouts{project: project, isolation: s.w.Isolation.V, file: imageInFiles(s.w)}
	whole := &compiled{source: s, project: project, compiled: c}
	return whole, a.checkHidden(whole.target())
}

// codeOf is the exit code that problems of a file stand for: 3, or 4 where a
// file asks for what only the caller may decide.
func codeOf(list diag.List) int {
	code := app.CodeOK
	for _, d := range list {
		switch {
		case d.Severity != diag.Error:
		case d.Code == "process-isolation":
			code = app.CodeRefused
		default:
			code = max(code, app.CodeInvalid)
		}
	}
	return code
}

// compileWorkshop compiles and checks the result.
func compileWorkshop(w *workshop.Workshop) (*compose.Compiled, error) {
	c, err := compose.Compile(w)
	if err != nil {
		return nil, app.Fail(app.CodeFailed, "compile: %w", err)
	}
	if err := checkPromises(c); err != nil {
		return nil, err
	}
	return c, nil
}

// checkPromises runs the check of B1–B12 on what is about to be used.
func checkPromises(c *compose.Compiled) error {
	violations := compose.Check(c)
	if len(violations) == 0 {
		return nil
	}
	text := ""
	for _, v := range violations {
		text += fmt.Sprintf("\n%v", v)
	}
	return app.Fail(app.CodeRefused, "the compiled project breaks %s of the boundary:%s", count(len(violations), "promise"), text).
		hint("this is a fault of the program; nothing was started")
}

// workers checks names of the command line against the workshop.
func (s *source) workers(cmd *cobra.Command, names []string) error {
	for _, name := range names {
		if s.worker(name) == nil {
			all := make([]string, len(s.w.Workers))
			for i, w := range s.w.Workers {
				all[i] = w.Name
			}
			return app.Fail(app.CodeUsage, "no worker %q in %s", name, s.file).Hint("%s", suggestion(name, all))
		}
	}
	return nil
}

// worker finds one by name; nil if there is none.
func (s *source) worker(name string) *workshop.Worker {
	for i := range s.w.Workers {
		if s.w.Workers[i].Name == name {
			return &s.w.Workers[i]
		}
	}
	return nil
}
