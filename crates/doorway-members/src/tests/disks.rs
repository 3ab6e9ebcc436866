//! Files: damaged ones, full disks, failing disks, and two processes with one file.
