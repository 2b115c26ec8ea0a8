//go:build !linux

package app

import (
	"context"

	"github.com/llmdo/workshop/internal/doctor"
	"github.com/llmdo/workshop/internal/initimage"
)

func machineModules(bool) doctor.Modules { return doctor.Modules{} }

func machineChecks() []doctor.Check { return nil }

func otherInstalled(initimage.Names) (doctor.Finding, bool) { return doctor.Finding{}, false }

func (env *Env) namespaceState(context.Context) []doctor.Finding { return nil }
