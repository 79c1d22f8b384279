//! `tenure control`.

mod permission_matrix;
mod status;

use clap::{Args, Subcommand};

use crate::failure::Failure;

/// Shows who may move the device, and who does.
///
/// The device is moved by one hand at a time. Whoever wants it takes the control lease over a WebSocket; docs/guides/control.md
/// shows how.
#[derive(Debug, Args)]
pub struct Control {
    #[command(subcommand)]
    command: ControlCommand,
}

#[derive(Debug, Subcommand)]
enum ControlCommand {
    Status(status::Status),
    Matrix(permission_matrix::PermissionMatrixArguments),
}

impl Control {
    /// Runs the command to its end.
    pub fn run(self) -> Result<(), Failure> {
        match self.command {
            ControlCommand::Status(status) => status.run(),
            ControlCommand::Matrix(matrix) => matrix.run(),
        }
    }
}
