package vrrp

// A failover has two lengths. Every command prints them in these words.
const (
	// WithoutHolder is the time in which no node holds the VIP: lab status reads it from
	// the nodes' links, doctor from their records, explain from their settings. A client
	// that sends requests all the time sees a little more, by the duration of a request.
	WithoutHolder = "without a holder"
	// WithoutAnswer is the longest time in which a client that sends requests all the
	// time gets no answer. It is longer than WithoutHolder where a holder does not serve,
	// and zero where the old holder answers until the next one has the VIP.
	WithoutAnswer = "without an answer"
)
