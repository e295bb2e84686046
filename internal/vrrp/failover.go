package vrrp

// A failover has two lengths. Every command prints them with these words.
const (
	// WithoutHolder is the time in which no node holds the VIP: status of the lab reads it
	// from the nodes' links, doctor from their records, explain from their settings. A client
	// that requests all the time sees a little more, by the time of a request.
	WithoutHolder = "without a holder"
	// WithoutAnswer is the longest time in which a client that requests all the time gets no
	// answer. It is more than WithoutHolder where a holder does not serve, and none where the
	// old holder answers until the next has the VIP.
	WithoutAnswer = "without an answer"
)
