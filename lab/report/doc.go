// Package report holds what a benchmark of the lab measured, sums it up and shows
// it: as a table ([Report.WriteTable]), as JSON ([Report.WriteJSON]) and as one
// HTML file ([Report.WriteHTML]) with a timeline of who held the VIP when.
package report
