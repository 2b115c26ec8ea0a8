package app

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/lib/shellquote"
)

// LoadForCompose prepares what plain Compose needs of this machine besides the
// generated files, and returns the command line that starts the project. yes
// agrees to builds.
func (env *Env) LoadForCompose(ctx context.Context, c *Project, g Generated, yes bool) (string, error) {
	e, err := env.Connect(ctx, c.ProjectRef, env.Approver("workshop compile --load", yes))
	if err != nil {
		return "", err
	}
	defer e.Close()
	if !e.Capabilities().Compose {
		return "", Fail(CodeEngine, "compile --load prepares what plain Compose needs, on the docker engine; here it is %s", e.Chosen.Name).
			Hint("use --engine docker where Docker runs; the generated files are the same on every machine")
	}
	info, err := e.Info(ctx)
	if err != nil {
		return "", EngineError(err)
	}
	if why := cmp.Or(compose.NoPlainCompose(c.Compiled), info.NoCompose); why != "" {
		return "", Fail(CodeRefused, "compile --load: %s", why).Hint("start it with `workshop up`")
	}
	ready, err := env.Prepare(ctx, e, c)
	if err != nil {
		return "", err
	}
	ch, err := env.Change(ctx, c.Name)
	if err != nil {
		return "", err
	}
	defer ch.Unlock()
	if ready, err = ch.Make(ctx, e, c, ready); err != nil {
		return "", err
	}
	files, err := compose.RenderFacts(ready.Compiled)
	if err != nil {
		return "", fmt.Errorf("compile --load: %w", err)
	}
	if err := g.writeRun(files); err != nil {
		return "", fmt.Errorf("compile --load: %w", err)
	}
	plan, err := env.Plan(ctx, e, ready, nil, UpOptions{DryRun: true})
	if err != nil {
		return "", err
	}
	loading, err := onlyLoading(plan)
	if err != nil {
		return "", err
	}
	if err := env.Apply(ctx, e, loading, 0); err != nil {
		return "", err
	}
	facts := files[slices.IndexFunc(files, func(f compose.File) bool { return f.Path == compose.FactsEnv })]
	return env.composeCommand(c, g, facts.Data), nil
}

// writeRun writes the files of run/ into the generated directory; they are
// never committed and not in its manifest.
func (g Generated) writeRun(files []compose.File) error {
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
// image and volume of workshop-init, caches with their owner, and read-only copies. A
// cache of other grants stays until `up`. A copy that a
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
			if _, cache := p.Compiled.Caches[s.Key]; cache && s.Op != engine.OpRemoveVolume {
				break
			}
			if !copied {
				continue
			}
			if user := engine.CopyUser(p.Compiled, p.Observed, s.Key); user != "" {
				if engine.CopyChanged(p.Compiled, p.Observed, s.Key) {
					return nil, Fail(CodeFailed, "compile --load: %s is not what it was when the copy that %s has was made", cp.Source, user).
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
func (env *Env) composeCommand(c *Project, g Generated, facts []byte) string {
	dir := g.Path("")
	words, variables := append(env.composeProgram(), "-p", c.Name), env.variableFiles(c)
	if len(variables) > 1 && words[0] == "docker-compose" {
		env.warn("docker-compose 1.29 takes one --env-file, not %d: put the variables into one of them, or into the environment", len(variables))
	}
	for _, file := range variables {
		if rel, err := filepath.Rel(dir, file); err == nil {
			file = rel
		}
		words = append(words, "--env-file", shellquote.Quote(filepath.ToSlash(file)))
	}
	if len(variables) == 0 {
		words = append(words, "--env-file", compose.FactsEnv)
	} else {
		words = append(assignments(facts), words...)
	}
	words = append(words, "-f", compose.ComposeFile, "-f", compose.FactsFile, "up")
	return "cd " + shellquote.Path(env.Shown(dir)) + " && " + strings.Join(words, " ")
}

// assignments are the lines of a file of variables as words of a shell.
func assignments(file []byte) (words []string) {
	for line := range strings.Lines(string(file)) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		words = append(words, name+"="+shellquote.Quote(value))
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
func (env *Env) composeProgram() []string {
	config, _ := env.Lookup("DOCKER_CONFIG")
	if config == "" {
		config = filepath.Join(env.Home, ".docker")
	}
	for _, dir := range append([]string{filepath.Join(config, "cli-plugins")}, pluginDirs...) {
		if Exists(filepath.Join(dir, "docker-compose")) {
			return []string{"docker", "compose"}
		}
	}
	path, _ := env.Lookup("PATH")
	for _, dir := range filepath.SplitList(path) {
		if dir != "" && Exists(filepath.Join(dir, "docker-compose")) {
			return []string{"docker-compose"}
		}
	}
	return []string{"docker", "compose"}
}

// variableFiles are the files that the workshop's variables come from; none
// where it has no variable.
func (env *Env) variableFiles(c *Project) []string {
	if len(c.Workshop.Variables) == 0 {
		return nil
	}
	var files []string
	if file := filepath.Join(c.Root(), ".env"); Exists(file) {
		files = append(files, file)
	}
	for _, f := range env.Settings.EnvFiles {
		files = append(files, env.Abs(f))
	}
	return files
}
