//! Firmware that comes in pieces. Each piece is looked at and forgotten.

use serde_json::{Value, json};
use tenure_control::problem::{Problem, ProblemCode};
use tenure_core::kernel::{Tick, TickDuration};
use tenure_core::rules::is_expired;

use super::{CommandReply, VirtualDevice, reply};
use crate::device_command_fields::{DeviceCommandFields, from_base64, from_hex, required};
use crate::firmware::{FirmwareImageError, FirmwareInfo, ImageChecker, MAX_IMAGE_BYTES};

/// How many bytes a piece has at most.
pub const MAX_CHUNK_BYTES: usize = 64 << 10;
/// How long an upload keeps others out without a piece.
pub const IDLE_TIMEOUT: TickDuration = TickDuration::from_secs(60);

/// An upload, or what became of the last one.
#[derive(Default)]
pub(super) enum FirmwareUpload {
    /// There was none since the start.
    #[default]
    None,
    /// Pieces come in. Boxed: most of the time there is none.
    Receiving(Box<ActiveUpload>),
    /// The last one was no firmware, or was dropped.
    Ended(&'static str, Option<FirmwareImageError>),
}

pub(super) struct ActiveUpload {
    check: ImageChecker,
    size: u32,
    last_chunk_at: Tick,
}

impl VirtualDevice {
    pub(super) fn firmware_version(&self) -> Value {
        json!({
            "version": self.firmware.version,
            "project": self.firmware.project,
            "running": self.firmware.to_json(),
            "next": self.next_firmware.as_ref().map(FirmwareInfo::to_json),
            "restartRequired": self.next_firmware.is_some(),
        })
    }

    pub(super) fn upload_status(&self) -> Value {
        let (state, received, size, message) = match &self.upload {
            FirmwareUpload::None => ("idle", 0, None, None),
            FirmwareUpload::Receiving(upload) => {
                ("receiving", upload.check.bytes_checked(), Some(upload.size), None)
            }
            FirmwareUpload::Ended(state, flaw) => (*state, 0, None, flaw.map(|flaw| flaw.to_string())),
        };
        json!({
            "state": state,
            "received": received,
            "size": size,
            "message": message,
            "maxBytes": MAX_IMAGE_BYTES,
            "maxPieceBytes": MAX_CHUNK_BYTES,
            "restartRequired": self.next_firmware.is_some(),
        })
    }

    pub(super) fn begin_upload(
        &mut self,
        mut fields: DeviceCommandFields,
        now: Tick,
    ) -> Result<CommandReply, Problem> {
        let size = fields.number_u32("size", 1..=MAX_IMAGE_BYTES)?;
        let size = required(size, "size", "how many bytes the image has")?;
        fields.finish(&["size"])?;
        if let FirmwareUpload::Receiving(upload) = &self.upload {
            let free_at = upload.last_chunk_at.saturating_add(IDLE_TIMEOUT);
            if !is_expired(now.0, free_at.0) {
                let seconds = free_at.since(now).as_millis().div_ceil(1_000);
                let message = format!(
                    "Another upload is under way; end it with ota.abort, or wait: without a piece it gives way in {seconds} s"
                );
                return Err(Problem::new(ProblemCode::Conflict, message));
            }
        }
        let upload = ActiveUpload { check: ImageChecker::default(), size, last_chunk_at: now };
        self.upload = FirmwareUpload::Receiving(Box::new(upload));
        reply(self.upload_status())
    }

    pub(super) fn accept_chunk(
        &mut self,
        mut fields: DeviceCommandFields,
        now: Tick,
    ) -> Result<CommandReply, Problem> {
        let offset = fields.number_u32("offset", 0..=MAX_IMAGE_BYTES)?;
        let offset = required(offset, "offset", "where in the image the piece begins")?;
        let data = required(fields.text("data")?, "data", "the piece's bytes as base64")?;
        let encoding = fields.text("encoding")?;
        fields.finish(&["offset", "data", "encoding"])?;
        let piece = decode(&data, encoding.as_deref())?;
        let upload = self.active_upload()?;
        if offset != upload.check.bytes_checked() {
            let message = format!("must be {}: that is how much has come", upload.check.bytes_checked());
            return Err(Problem::of_field(ProblemCode::Conflict, "offset", message));
        }
        let remaining = usize::try_from(upload.size - offset).unwrap_or(usize::MAX);
        if piece.len() > remaining {
            let message = format!("is more than the {remaining} bytes that are still to come");
            return Err(Problem::of_field(ProblemCode::TooLarge, "data", message));
        }
        upload.last_chunk_at = now;
        if let Err(flaw) = upload.check.feed(&piece) {
            return Err(self.fail(flaw));
        }
        reply(self.upload_status())
    }

    pub(super) fn finish_upload(
        &mut self,
        fields: DeviceCommandFields,
        now: Tick,
    ) -> Result<CommandReply, Problem> {
        fields.finish(&[])?;
        let upload = self.active_upload()?;
        if upload.check.bytes_checked() < upload.size {
            let (taken, size) = (upload.check.bytes_checked(), upload.size);
            let message = format!("Only {taken} of {size} bytes have come; send the rest with ota.chunk");
            return Err(Problem::new(ProblemCode::Conflict, message));
        }
        match upload.check.clone().finish() {
            Ok(image) => {
                self.upload = FirmwareUpload::Ended("ready", None);
                self.accept_firmware(image, now)
            }
            Err(flaw) => Err(self.fail(flaw)),
        }
    }

    pub(super) fn abort_upload(&mut self, fields: DeviceCommandFields) -> Result<CommandReply, Problem> {
        fields.finish(&[])?;
        let was_there = matches!(self.upload, FirmwareUpload::Receiving(_));
        if was_there {
            self.upload = FirmwareUpload::Ended("aborted", None);
        }
        reply(json!({ "aborted": was_there }))
    }

    fn active_upload(&mut self) -> Result<&mut ActiveUpload, Problem> {
        match &mut self.upload {
            FirmwareUpload::Receiving(upload) => Ok(upload),
            FirmwareUpload::None | FirmwareUpload::Ended(..) => {
                let message = "No upload is under way; begin one with ota.begin";
                Err(Problem::new(ProblemCode::NotFound, message))
            }
        }
    }

    fn fail(&mut self, flaw: FirmwareImageError) -> Problem {
        self.upload = FirmwareUpload::Ended("failed", Some(flaw));
        flaw.into()
    }
}

/// The bytes of a piece. Which of the two it is must be said: many texts could be both.
fn decode(data: &str, encoding: Option<&str>) -> Result<Vec<u8>, Problem> {
    // Two digits a byte; base64 takes less.
    if data.len() > 2 * MAX_CHUNK_BYTES {
        return Err(too_large());
    }
    let bytes = match encoding {
        None | Some("base64") => from_base64(data),
        Some("hex") => from_hex(data),
        Some(_) => {
            let message = "must be \"base64\" (which is also meant without it) or \"hex\"";
            return Err(Problem::of_field(ProblemCode::InvalidValue, "encoding", message));
        }
    };
    let bytes = bytes.map_err(|flaw| {
        let named = encoding.unwrap_or("base64");
        let message = format!("is no {named}: it {}", flaw.as_str());
        Problem::of_field(ProblemCode::InvalidValue, "data", message)
    })?;
    if bytes.is_empty() {
        return Err(Problem::of_field(ProblemCode::InvalidValue, "data", "is empty; send at least a byte"));
    }
    if bytes.len() > MAX_CHUNK_BYTES { Err(too_large()) } else { Ok(bytes) }
}

fn too_large() -> Problem {
    let message = format!("is more than {MAX_CHUNK_BYTES} bytes; send it in smaller pieces");
    Problem::of_field(ProblemCode::TooLarge, "data", message)
}
