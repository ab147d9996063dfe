-- KEYS sessions, info
-- ARGV replica, session ms, start (1 or 0), info
-- Returns {granted, ms} or {ended}.

local sessions, info = KEYS[1], KEYS[2]

local err = foreign(sessions, 'zset') or foreign(info, 'hash')
if err then
  return err
end
local ms = math.floor(now_us() / 1000)
local living = session_end(sessions, ARGV[1], ms)
if ARGV[3] ~= '1' and not living then
  return {'ended'}
end
local till = math.max(living or 0, ms + tonumber(ARGV[2]))
set_session(sessions, info, ARGV[1], till, ARGV[4], ms)
return {'granted', till - ms}
