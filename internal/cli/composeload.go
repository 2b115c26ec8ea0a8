package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/shellword"
)

// loadForCompose prepares what plain Compose needs of this machine and prints
// the command that starts the project.
func (a *program) loadForCompose(ctx context.Context, cmd *cobra.Command, c *app.Project, g generated, o compileOptions) error {
	e, err := a.Connect(ctx, c.ProjectRef, a.Approver(commandLine(cmd, "compile --load"), o.yes))
	if err != nil {
		return err
	}
	defer e.Close()
	if !e.Capabilities().Compose {
		return app.Fail(app.CodeEngine, "compile --load prepares what plain Compose needs, on the docker engine; here it is %s", e.Chosen.Name).
			Hint("use --engine docker where Docker runs; the generated files are the same on every machine")
	}
	ready, err := a.Prepare(ctx, e, c)
	if err != nil {
		return err
	}
	ch, err := a.Change(ctx, c.Name)
	if err != nil {
		return err
	}
	defer ch.Unlock()
	if ready, err = ch.Make(ctx, e, c, ready); err != nil {
		return err
	}
	files, err := compose.RenderFacts(ready.Compiled)
	if err != nil {
		return fmt.Errorf("compile --load: %w", err)
	}
	if err := g.writeRun(files); err != nil {
		return fmt.Errorf("compile --load: %w", err)
	}
	plan, err := a.Plan(ctx, e, ready, nil, app.UpOptions{DryRun: true})
	if err != nil {
		return err
	}
	loading, err := onlyLoading(plan)
	if err != nil {
		return err
	}
	if err := a.Apply(ctx, e, loading, 0); err != nil {
		return err
	}
	env := files[slices.IndexFunc(files, func(f compose.File) bool { return f.Path == compose.FactsEnv })]
	fmt.Fprintln(a.Out, a.composeCommand(c, g, env.Data))
	return nil
}

// writeRun writes the files of run/ into the generated directory; they are
// never committed and not in its manifest.
func (g generated) writeRun(files []compose.File) error {
	dir, err := g.open(true)
	if err != nil {
		return err
	}
	defer dir.Close()
	for _, f := range files {
		if err := replaceFile(dir, f); err != nil {
			return err
		}
	}
	return nil
}

// onlyLoading keeps the steps of a plan that Compose can't do itself: the
// image and volume of workshop-init, and read-only copies. A copy that a
// container has is left as it is; one that should be another is an error: files
// that are gone or excluded now would stay in it (B9).
func onlyLoading(p *engine.Plan) (*engine.Plan, error) {
	kept := *p
	kept.Steps = nil
	for _, s := range p.Steps {
		cp, copied := p.Compiled.Copies[s.Key]
		switch s.Op {
		case engine.OpLoadInit, engine.OpFillTools:
		case engine.OpRemoveVolume, engine.OpCreateVolume, engine.OpFillVolume:
			if !copied {
				continue
			}
			if user := engine.CopyUser(p.Compiled, p.Observed, s.Key); user != "" {
				if engine.CopyChanged(p.Compiled, p.Observed, s.Key) {
					return nil, app.Fail(app.CodeFailed, "compile --load: %s is not what it was when the copy that %s has was made", cp.Source, user).
						Hint("remove the containers first: `workshop down`")
				}
				continue
			}
		default:
			continue
		}
		s.After = slices.Clone(s.After)
		kept.Steps = append(kept.Steps, s)
	}
	// What was left out is not waited for.
	for i := range kept.Steps {
		kept.Steps[i].After = slices.DeleteFunc(kept.Steps[i].After, func(id int) bool {
			return !slices.ContainsFunc(kept.Steps, func(s engine.Step) bool { return s.ID == id })
		})
	}
	return &kept, nil
}

// composeCommand is the command line to paste: from the directory that every
// Compose version takes paths from. docker-compose 1.29 takes one --env-file:
// where the workshop's variables come from a file, facts are the environment's.
func (a *program) composeCommand(c *app.Project, g generated, facts []byte) string {
	dir := g.path("")
	words, variables := append(a.composeProgram(), "-p", c.Name), a.variableFiles(c)
	if len(variables) > 1 && words[0] == "docker-compose" {
		a.warn("docker-compose 1.29 takes one --env-file, not %d: put the variables into one of them, or into the environment", len(variables))
	}
	for _, file := range variables {
		if rel, err := filepath.Rel(dir, file); err == nil {
			file = rel
		}
		words = append(words, "--env-file", shellword.Quote(filepath.ToSlash(file)))
	}
	if len(variables) == 0 {
		words = append(words, "--env-file", compose.FactsEnv)
	} else {
		words = append(assignments(facts), words...)
	}
	words = append(words, "-f", compose.ComposeFile, "-f", compose.FactsFile, "up")
	return "cd " + shellword.Quote(a.Shown(dir)) + " && " + strings.Join(words, " ")
}

// assignments are the lines of a file of variables as words of a shell.
func assignments(file []byte) (words []string) {
	for line := range strings.Lines(string(file)) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		words = append(words, name+"="+shellword.Quote(value))
	}
	return words
}

// pluginDirs are where Docker's CLI looks for `docker compose`
// (docker/cli cli-plugins/manager).
var pluginDirs = []string{
	"/usr/local/lib/docker/cli-plugins", "/usr/local/libexec/docker/cli-plugins",
	"/usr/lib/docker/cli-plugins", "/usr/libexec/docker/cli-plugins",
}

// composeProgram is the Compose that is here: `docker-compose` where that is
// the only one, else `docker compose`.
func (a *program) composeProgram() []string {
	config, _ := a.Lookup("DOCKER_CONFIG")
	if config == "" {
		config = filepath.Join(a.Home, ".docker")
	}
	for _, dir := range append([]string{filepath.Join(config, "cli-plugins")}, pluginDirs...) {
		if app.Exists(filepath.Join(dir, "docker-compose")) {
			return []string{"docker", "compose"}
		}
	}
	path, _ := a.Lookup("PATH")
	for _, dir := range filepath.SplitList(path) {
		if dir != "" && app.Exists(filepath.Join(dir, "docker-compose")) {
			return []string{"docker-compose"}
		}
	}
	return []string{"docker", "compose"}
}

// variableFiles are the files that the workshop's variables come from; none
// where it has no variable.
func (a *program) variableFiles(c *app.Project) []string {
	if len(c.Workshop.Variables) == 0 {
		return nil
	}
	var files []string
	if env := filepath.Join(c.Root(), ".env"); app.Exists(env) {
		files = append(files, env)
	}
	for _, f := range a.Settings.EnvFiles {
		files = append(files, a.Abs(f))
	}
	return files
}
