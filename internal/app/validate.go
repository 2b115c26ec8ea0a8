package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/internal/facts"
	"github.com/llmdo/workshop/internal/promise"
)

// Validation is what was found in workshop files.
type Validation struct {
	// Files are the workshop files, and those of workers that have problems.
	Files, Workers int
	// Diagnostics are those of all files, and Sources their texts, by names as the
	// user would write them.
	Diagnostics diag.List
	Sources     map[string][]byte
	// Refused are valid workshops that must not run.
	Refused []*Failure
}

// Validate checks workshop files: a directory means the one in it, no path for
// the one that is found. No engine is asked.
func (env *Env) Validate(ctx context.Context, paths []string) (Validation, error) {
	files, missing, err := env.expandPaths(paths)
	v := Validation{Diagnostics: missing, Sources: map[string][]byte{}}
	if err != nil {
		return v, err
	}
	named := map[string]bool{}
	for _, file := range files {
		s, err := env.Read(ctx, file)
		if err != nil {
			return v, err
		}
		if n := len(s.Diagnostics); n == 0 || s.Diagnostics[n-1].Code != "too-many-problems" {
			s.Diagnostics = append(s.Diagnostics, facts.Absent(s.mounts, s.Root(), s.Diagnostics)...).Sorted()
		}
		list, sources := s.Shown()
		named[s.ShownFile(s.Base())] = true
		for _, d := range list {
			if d.Range.Filename != "" {
				named[d.Range.Filename] = true
			}
		}
		v.Diagnostics = append(v.Diagnostics, list...)
		maps.Copy(v.Sources, sources)
		if s.Workshop == nil {
			continue
		}
		v.Workers += len(s.Workshop.Workers)
		wrong, texts, err := s.unshared(ctx)
		if err != nil {
			return v, err
		}
		v.Diagnostics = append(v.Diagnostics, wrong...)
		maps.Copy(v.Sources, texts)
		v.Diagnostics = append(v.Diagnostics, env.waived(s)...)
		if s.Runs() != nil {
			continue // what it becomes is seen where it is imported or extended
		}
		_, err = compileWorkshop(s.Workshop)
		if f, ok := errors.AsType[*Failure](err); ok {
			f.Err = fmt.Errorf("%s: %w", s.ShownFile(s.Base()), f.Err)
			v.Refused = append(v.Refused, f)
		}
	}
	v.Files = len(named)
	return v, nil
}

// Code is the exit code of the result.
func (v Validation) Code() int {
	code := codeOf(v.Diagnostics)
	for _, f := range v.Refused {
		code = max(code, f.Code)
	}
	return code
}

// waived names the promises that don't hold for a workshop on the engine that the
// caller names.
func (env *Env) waived(s *Source) diag.List {
	if !slices.Contains(promise.Engines(), env.Settings.Engine) {
		return nil // it will be one that keeps them
	}
	not := promise.Waived(env.Settings.Engine)
	if len(not) == 0 {
		return nil
	}
	return diag.List{{
		Severity: diag.Warning, Code: "process-mode", Summary: "process mode doesn't keep " + promise.Ranges(not),
		Detail: "Tools would run on this machine, as you.", Range: diag.Range{Filename: s.ShownFile(s.Base())},
		Hint: "`workshop capabilities --engine process` says what each of them is",
	}}
}

// expandPaths turns the arguments of validate into files: a directory means
// the workshop file in it, no argument for the one that is found. What
// isn't there is a problem like any other, so that the report is complete.
func (env *Env) expandPaths(args []string) ([]string, diag.List, error) {
	if len(args) == 0 {
		file, err := env.FindFile()
		return []string{file}, nil, err
	}
	var files []string
	var missing diag.List
	for _, arg := range args {
		file := env.Abs(arg)
		info, err := os.Stat(file)
		if err == nil && info.IsDir() {
			found, ok := fileIn(file)
			if !ok {
				missing = append(missing, notThere(arg, "no workshop.yaml in this directory"))
				continue
			}
			file = found
		}
		if err != nil {
			missing = append(missing, notThere(arg, PlainPathError(err).Error()))
			continue
		}
		if !slices.Contains(files, file) {
			files = append(files, file)
		}
	}
	return files, missing, nil
}

func notThere(name, why string) diag.Diagnostic {
	return diag.Diagnostic{
		Severity: diag.Error, Code: "no-file", Summary: why,
		Hint:  "name a workshop file or a directory that has one; `workshop init` writes one",
		Range: diag.Range{Filename: filepath.ToSlash(name)},
	}
}
