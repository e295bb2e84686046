package problem

// Report collects the problems of one input.
type Report struct {
	List List
	// Locate fills in the position of a problem's field; nil where no field is in a file.
	Locate func(Problem) Problem
}

// Problem adds a problem.
func (r *Report) Problem(p Problem) {
	if r.Locate != nil {
		p = r.Locate(p)
	}
	r.List = append(r.List, p)
}

func (r *Report) Add(code Code, field, found, expected, hint string) {
	r.Problem(Problem{Severity: Error, Code: code, Field: field, Found: found, Expected: expected, Hint: hint})
}

// Warn adds a warning.
func (r *Report) Warn(code Code, field, found, expected, hint string) {
	r.Problem(Problem{Severity: Warning, Code: code, Field: field, Found: found, Expected: expected, Hint: hint})
}
