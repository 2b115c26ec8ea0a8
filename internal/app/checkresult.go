package app

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"runtime/metrics"
	"time"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/internal/lib/boundedfile"
	"github.com/llmdo/workshop/workshop"
	"github.com/llmdo/workshop/workshop/worker"
)

// CheckedResult is a worker's answer, what it is called, and what is wrong with it.
type CheckedResult struct {
	Name        string
	Text        []byte
	Diagnostics diag.List
}

// CheckResult compares an answer of a worker of s with its result_type. file "-" is
// stdin.
func (env *Env) CheckResult(ctx context.Context, s *Source, w *workshop.Worker, file string, stdin io.Reader) (r CheckedResult, err error) {
	schema := w.Definition.ResultType
	if schema == nil {
		return r, Fail(CodeFailed, "%s names no result_type, so nothing is known of its answers", w.File).
			Hint("add `result_type:` with a JSON Schema to the worker's file")
	}
	if r.Text, r.Name, err = env.readResult(file, s.Root(), stdin); err != nil {
		return r, Fail(CodeFailed, "check-result: %w", err)
	}
	r.Diagnostics, err = checkInTime(ctx, maxCheckTime, schema, r.Name, r.Text)
	return r, err
}

// maxCheckTime is how long an answer is compared with its schema. Alternatives
// that refer to themselves double the work with each level of an answer, which a
// worker writes.
const maxCheckTime = 10 * time.Second

// maxCheckMemory is what that may take besides, in bytes: what is told of an
// alternative holds the whole value, and there may be many of both.
const maxCheckMemory = 512 << 20

// heapBytes are the bytes of all values that are in use, or were until lately.
func heapBytes() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// checkInTime is [worker.CheckResult] as long as ctx and the limits allow. What is
// not done then goes on until the process ends.
func checkInTime(ctx context.Context, limit time.Duration, schema []byte, name string, data []byte) (diag.List, error) {
	done := make(chan diag.List, 1)
	go func() { done <- worker.CheckResult(schema, name, data) }()
	const hint = "ask the worker for a smaller answer, or simplify the schema: alternatives (anyOf, oneOf), and those that refer to themselves above all, multiply the work"
	end, look, most := time.After(limit), time.NewTicker(20*time.Millisecond), heapBytes()+maxCheckMemory
	defer look.Stop()
	for {
		select {
		case list := <-done:
			return list, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-end:
			return nil, Fail(CodeFailed, "check-result: %s: the comparison of %d bytes with result_type took more than %s", name, len(data), limit).Hint(hint)
		case <-look.C:
			if heapBytes() > most {
				return nil, Fail(CodeFailed, "check-result: %s: the comparison of %d bytes with result_type took more than %d MiB of memory", name, len(data), maxCheckMemory>>20).Hint(hint)
			}
		}
	}
}

// readResult reads no more than is checked. In the project it follows no symbolic
// link out of that: a worker may have written the file, and what is wrong with a
// text is told by showing it.
func (env *Env) readResult(file, project string, stdin io.Reader) (data []byte, shown string, err error) {
	if file == "-" {
		data, err = io.ReadAll(io.LimitReader(stdin, worker.MaxResult+1))
		return data, "stdin", err
	}
	name := env.Abs(file)
	if below, relErr := filepath.Rel(project, name); relErr == nil && filepath.IsLocal(below) {
		data, err = boundedfile.ReadFS(ProjectDir(project), filepath.ToSlash(below), worker.MaxResult)
	} else {
		data, err = boundedfile.Read(name, worker.MaxResult)
	}
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", file, PlainPathError(err))
	}
	return data, file, nil
}
