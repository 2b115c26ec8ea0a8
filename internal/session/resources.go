package session

// Resource is one readable description.
type Resource struct {
	URI, Name, Description, MIMEType string
	Text                             string
}

// Resources describe what the workshop grants to the Host's workers.
func (h *Host) Resources() []Resource { return nil }

// Instructions tell a model what it may do and reach.
func (h *Host) Instructions() string { return "" }
