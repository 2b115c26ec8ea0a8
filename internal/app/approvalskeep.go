package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/llmdo/workshop/internal/lib/boundedfile"
	"github.com/llmdo/workshop/internal/session/approval"
	"github.com/llmdo/workshop/internal/trust"
	"github.com/llmdo/workshop/workshop"
	"github.com/llmdo/workshop/workshop/edit"
)

// keptRules writes down what a person said always to: in the workshop.yaml, for
// all who use it, and in the user's list of what was accepted for that file.
type keptRules struct {
	env      *Env
	file     string // the workshop.yaml, absolute
	accepted trust.List[approval.Rule]
}

// Preview shows the lines that Write would change in the workshop.yaml. It fails where the
// file would be refused with them, as where its base closes approvals (B47).
func (k *keptRules) Preview(ctx context.Context, r approval.Rule, before *workshop.ApprovalRule) (string, error) {
	old, changed, err := k.edited(r, before)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	if bytes.Equal(old, changed) {
		fmt.Fprintf(&b, "%s has the rule; you agree to it:\n", k.env.Shown(k.file))
		fmt.Fprintf(&b, "%s\n", r.Line())
	} else {
		s, err := k.env.read(ctx, k.file, reading{text: changed})
		if err != nil {
			return "", err
		}
		if s.Workshop == nil {
			return "", fmt.Errorf("with the rule, %s would be invalid", k.env.Shown(k.file))
		}
		fmt.Fprintf(&b, "%s\n", k.env.Shown(k.file))
		for _, line := range changedLines(old, changed) {
			b.WriteString(line + "\n")
		}
	}
	fmt.Fprintf(&b, "%s\n+ that you agree", k.env.Shown(k.accepted.Path))
	return b.String(), nil
}

// Write writes the rule.
func (k *keptRules) Write(ctx context.Context, r approval.Rule, before *workshop.ApprovalRule) error {
	old, changed, err := k.edited(r, before)
	if err != nil {
		return err
	}
	if !bytes.Equal(old, changed) {
		s, err := k.env.Read(ctx, k.file)
		if err != nil {
			return err
		}
		if s.Workshop == nil {
			return fmt.Errorf("%s is invalid by now", k.env.Shown(k.file))
		}
		if err := k.env.replaceFile(ctx, s, old, changed); err != nil {
			return err
		}
	}
	if err := k.accepted.Add(RealPath(k.file), r); err != nil {
		return fmt.Errorf("%s has the rule, but not that you agree: %w", k.env.Shown(k.file), err)
	}
	return nil
}

// edited returns the text of the file, and with the rule.
func (k *keptRules) edited(r approval.Rule, before *workshop.ApprovalRule) (old, changed []byte, err error) {
	if info, err := os.Lstat(k.file); err != nil || !info.Mode().IsRegular() {
		return nil, nil, errors.Join(err, fmt.Errorf("%s is a link or no ordinary file, and is not written", k.env.Shown(k.file)))
	}
	if old, err = boundedfile.Read(k.file, workshop.MaxFileSize); err != nil {
		return nil, nil, err
	}
	var at *edit.Rule
	if before != nil {
		at = &edit.Rule{Tool: before.Tool, Match: before.Match, Approval: string(before.Approval)}
	}
	changed, err = edit.AddRule(old, edit.Rule{Tool: r.Tool, Match: r.Match, Approval: string(workshop.ApprovalAuto)}, at)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", filepath.Base(k.file), err)
	}
	return old, changed, nil
}
