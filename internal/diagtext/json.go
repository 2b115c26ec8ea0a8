package diagtext

import (
	"encoding/json"
	"io"

	"github.com/llmdo/workshop/diag"
)

// Report is the shape of `validate --format json`, for programs that read it.
type Report struct {
	Valid        bool               `json:"valid"`
	ErrorCount   int                `json:"error_count"`
	WarningCount int                `json:"warning_count"`
	Diagnostics  []ReportDiagnostic `json:"diagnostics"`
}

// ReportDiagnostic is one [diag.Diagnostic] of a [Report].
type ReportDiagnostic struct {
	Severity string          `json:"severity"`
	Code     string          `json:"code"`
	Summary  string          `json:"summary"`
	Detail   string          `json:"detail"`
	Hint     string          `json:"hint,omitempty"`
	Range    *diag.Range     `json:"range,omitempty"`
	Related  []ReportRelated `json:"related,omitempty"`
}

// ReportRelated is one [diag.Related] of a [Report].
type ReportRelated struct {
	Message string      `json:"message"`
	Range   *diag.Range `json:"range,omitempty"`
}

// JSON writes one object for all diagnostics. `valid` is false when there
// is at least one error. `detail` is an empty string where there is none;
// `range` is absent when no file is known, and its positions are 0 when the
// diagnostic is about the file as a whole.
func JSON(w io.Writer, l diag.List) error {
	report := Report{
		Valid:        !l.HasErrors(),
		ErrorCount:   l.Count(diag.Error),
		WarningCount: l.Count(diag.Warning),
		Diagnostics:  make([]ReportDiagnostic, 0, len(l)),
	}
	for _, d := range l {
		j := ReportDiagnostic{
			Severity: d.Severity.String(), Code: d.Code,
			Summary: d.Summary, Detail: d.Detail, Hint: d.Hint,
			Range: rangeOrNil(d.Range),
		}
		for _, r := range d.Related {
			j.Related = append(j.Related, ReportRelated{r.Message, rangeOrNil(r.Range)})
		}
		report.Diagnostics = append(report.Diagnostics, j)
	}
	return encode(w, report)
}

func rangeOrNil(r diag.Range) *diag.Range {
	if r.Filename == "" {
		return nil
	}
	return &r
}

func encode(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
