package diag

import (
	"encoding/json"
	"io"
)

// Report is the shape of `validate --format json`, for programs that read it.
type Report struct {
	Valid        bool               `json:"valid"`
	ErrorCount   int                `json:"error_count"`
	WarningCount int                `json:"warning_count"`
	Diagnostics  []ReportDiagnostic `json:"diagnostics"`
}

// ReportDiagnostic is one [Diagnostic] of a [Report].
type ReportDiagnostic struct {
	Severity string          `json:"severity"`
	Code     string          `json:"code"`
	Summary  string          `json:"summary"`
	Detail   string          `json:"detail"`
	Hint     string          `json:"hint,omitempty"`
	Range    *Range          `json:"range,omitempty"`
	Related  []ReportRelated `json:"related,omitempty"`
}

// ReportRelated is one [Related] of a [Report].
type ReportRelated struct {
	Message string `json:"message"`
	Range   *Range `json:"range,omitempty"`
}

// WriteJSON writes one object for all diagnostics. `valid` is false when there
// is at least one error. `detail` is an empty string where there is none;
// `range` is absent when no file is known, and its positions are 0 when the
// diagnostic is about the file as a whole.
func WriteJSON(w io.Writer, l List) error {
	report := Report{
		Valid:        !l.HasErrors(),
		ErrorCount:   l.Count(Error),
		WarningCount: l.Count(Warning),
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

func rangeOrNil(r Range) *Range {
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
